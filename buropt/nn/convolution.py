"""Convolutions and pooling of small images and signals.

The windows of an image become the rows of a matrix, so that a convolution is one matrix product:
in an oracle one for all samples of a tile. Leading axes are worked off one image at a time.
"""

from __future__ import annotations

import operator

import numpy as np

from buropt.nn._operands import Array, as_array, trace_of, where

Pair = tuple[int, int]


def conv1d(
    x: Array, weight: Array, bias: Array | None = None, stride: int = 1, padding: int = 0
) -> Array:
    """Cross-correlation of a signal with each kernel, as PyTorch's conv1d.

    Parameters
    ----------
    x : array, shape (..., C_in, L)
    weight : array, shape (C_out, C_in, K)
    bias : array, shape (C_out,), optional
    stride : int
    padding : int
        Zeros at both ends.

    Returns
    -------
    array, shape (..., C_out, (L + 2 padding - K) // stride + 1)

    Raises
    ------
    ValueError
        If the shapes do not fit, or the kernel is longer than the padded signal.
    """
    x, weight = as_array(x), as_array(weight)
    if x.ndim < 2 or weight.ndim != 3 or x.shape[-2] != weight.shape[1]:
        raise ValueError(
            f"buropt.nn.conv1d: x of shape {x.shape} and weight of shape {weight.shape} do not "
            f"fit.{where(x, weight)} Instead: (..., C_in, L) and (C_out, C_in, K)."
        )
    image, kernel = x[..., None, :], weight[:, :, None, :]
    return _convolve("conv1d", image, kernel, bias, (1, stride), (0, padding))[..., 0, :]


def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Pair = 1,
    padding: int | Pair = 0,
) -> Array:
    """Cross-correlation of an image with each kernel, as PyTorch's conv2d.

    Parameters
    ----------
    x : array, shape (..., C_in, H, W)
    weight : array, shape (C_out, C_in, K_H, K_W)
    bias : array, shape (C_out,), optional
    stride, padding : int or pair of int
        Down and right; padding is with zeros on all sides.

    Returns
    -------
    array, shape (..., C_out, (H + 2 padding - K_H) // stride + 1, the same of W)

    Raises
    ------
    ValueError
        If the shapes do not fit, or the kernel is larger than the padded image.
    """
    x, weight = as_array(x), as_array(weight)
    if x.ndim < 3 or weight.ndim != 4 or x.shape[-3] != weight.shape[1]:
        raise ValueError(
            f"buropt.nn.conv2d: x of shape {x.shape} and weight of shape {weight.shape} do not "
            f"fit.{where(x, weight)} Instead: (..., C_in, H, W) and (C_out, C_in, K_H, K_W)."
        )
    return _convolve("conv2d", x, weight, bias, _pair(stride), _pair(padding))


def max_pool2d(x: Array, kernel_size: int | Pair, stride: int | Pair | None = None) -> Array:
    """The largest element of each window of an image; equal ones share the cotangent.

    Parameters
    ----------
    x : array, shape (..., H, W)
    kernel_size : int or pair of int
    stride : int or pair of int, optional
        The kernel's size if left out.
    """
    return np.max(_pooled("max_pool2d", x, kernel_size, stride), axis=-1)


def avg_pool2d(x: Array, kernel_size: int | Pair, stride: int | Pair | None = None) -> Array:
    """The mean of each window of an image; parameters as of `max_pool2d`."""
    return np.mean(_pooled("avg_pool2d", x, kernel_size, stride), axis=-1)


def _pooled(name: str, x: Array, kernel_size: int | Pair, stride: int | Pair | None) -> Array:
    """The windows, shape (..., H_out, W_out, window's size)."""
    x = as_array(x)
    if x.ndim < 2:
        raise ValueError(
            f"buropt.nn.{name}: x has shape {x.shape}.{where(x)} Instead: (..., H, W)."
        )
    kernel = _pair(kernel_size)
    steps = kernel if stride is None else _pair(stride)
    images = x.reshape(-1, *x.shape[-2:])
    height, width = _out_size(name, images, kernel, steps, (0, 0))
    windows = _patches(images, kernel, steps, (0, 0))
    windows = windows.reshape(height, width, images.shape[0], kernel[0] * kernel[1])
    windows = windows.transpose(2, 0, 1, 3)
    return windows.reshape(*x.shape[:-2], height, width, kernel[0] * kernel[1])


def _convolve(
    name: str, x: Array, weight: Array, bias: Array | None, stride: Pair, padding: Pair
) -> Array:
    if x.ndim > 3:
        return np.stack([_convolve(name, one, weight, bias, stride, padding) for one in x])
    kernel = weight.shape[2], weight.shape[3]
    height, width = _out_size(name, x, kernel, stride, padding)
    rows = _patches(x, kernel, stride, padding) @ weight.reshape(weight.shape[0], -1).T
    if bias is not None:
        rows = rows + bias
    return rows.T.reshape(weight.shape[0], height, width)


def _patches(x: Array, kernel: Pair, stride: Pair, padding: Pair) -> Array:
    """(C, H, W) -> (H_out * W_out, C * kernel's size): the windows, one a row."""
    trace = trace_of(x)
    if trace is not None:
        attributes = {"kernel": list(kernel), "stride": list(stride), "padding": list(padding)}
        return trace.emit("patches", (x,), attributes)
    padded = np.pad(x, ((0, 0), (padding[0],) * 2, (padding[1],) * 2))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(1, 2))
    windows = windows[:, :: stride[0], :: stride[1]].transpose(1, 2, 0, 3, 4)
    return windows.reshape(windows.shape[0] * windows.shape[1], -1)


def _out_size(name: str, x: Array, kernel: Pair, stride: Pair, padding: Pair) -> Pair:
    """Rows and columns of windows; raises where there are none."""
    extents = [x.shape[1] + 2 * padding[0], x.shape[2] + 2 * padding[1]]
    if min(*kernel, *stride) < 1 or min(padding) < 0 or any(map(operator.gt, kernel, extents)):
        raise ValueError(
            f"buropt.nn.{name}: a kernel of size {kernel} with stride {stride} and padding "
            f"{padding} does not fit into an image of shape {x.shape}.{where(x)}"
        )
    height, width = ((extents[k] - kernel[k]) // stride[k] + 1 for k in (0, 1))
    return height, width


def _pair(value: int | Pair) -> Pair:
    if isinstance(value, tuple | list):
        first, second = value
        return operator.index(first), operator.index(second)
    return operator.index(value), operator.index(value)
