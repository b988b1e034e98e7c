"""Layers and losses of neural networks, as plain functions.

Inside of a traced loss they emit fused primitives; on plain arrays they compute the same with
NumPy. Layouts are PyTorch's: a weight is (out, in), an image (channels, height, width). A function
sees one sample; parameters are arrays in nested dicts, as `buropt.nn.init` makes them.

>>> import numpy as np
>>> layer = init.linear(seed=0, out_features=3, in_features=4)
>>> linear(np.ones(4), **layer).shape
(3,)
"""

from buropt.nn import init as init
from buropt.nn import models as models
from buropt.nn.activations import gelu as gelu
from buropt.nn.activations import log_softmax as log_softmax
from buropt.nn.activations import logsumexp as logsumexp
from buropt.nn.activations import relu as relu
from buropt.nn.activations import sigmoid as sigmoid
from buropt.nn.activations import silu as silu
from buropt.nn.activations import softmax as softmax
from buropt.nn.activations import softplus as softplus
from buropt.nn.activations import tanh as tanh
from buropt.nn.attention import attention as attention
from buropt.nn.attention import causal_self_attention as causal_self_attention
from buropt.nn.convolution import avg_pool2d as avg_pool2d
from buropt.nn.convolution import conv1d as conv1d
from buropt.nn.convolution import conv2d as conv2d
from buropt.nn.convolution import max_pool2d as max_pool2d
from buropt.nn.layers import dropout as dropout
from buropt.nn.layers import embedding as embedding
from buropt.nn.layers import layer_norm as layer_norm
from buropt.nn.layers import linear as linear
from buropt.nn.layers import rms_norm as rms_norm
from buropt.nn.losses import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from buropt.nn.losses import cross_entropy as cross_entropy
from buropt.nn.losses import mse as mse
from buropt.nn.losses import one_hot as one_hot

__all__ = [
    "attention",
    "avg_pool2d",
    "binary_cross_entropy_with_logits",
    "causal_self_attention",
    "conv1d",
    "conv2d",
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "init",
    "layer_norm",
    "linear",
    "log_softmax",
    "logsumexp",
    "max_pool2d",
    "models",
    "mse",
    "one_hot",
    "relu",
    "rms_norm",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
]
