"""Optimization methods, one small file each. `base.py` says what they share."""

from buropt.optim.base import Optimizer
from buropt.optim.dcgd import DCGD
from buropt.optim.diana import Diana
from buropt.optim.ef21 import EF21
from buropt.optim.gd import GD
from buropt.optim.marina import Marina
from buropt.optim.sgd import SGD

__all__ = ["DCGD", "EF21", "GD", "SGD", "Diana", "Marina", "Optimizer"]
