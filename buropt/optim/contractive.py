"""Contractive messages, E|C(x) - x|^2 <= (1 - alpha) |x|^2, and the constants of error feedback.

Methods of the EF21 family keep an estimate g_i of every worker's vector v_i and send C(v_i - g_i).
Then, for any new v_i+, E|g_i+ - v_i+|^2 <= (1 - theta) |g_i - v_i|^2 + beta |v_i+ - v_i|^2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from buropt.compressors import Compressor
from buropt.optim.base import Array, unbiased_omega

if TYPE_CHECKING:
    from buropt.problems.base import Index, Problem
    from buropt.random import Key


def contraction(compressor: Compressor, dim: int) -> float:
    """The alpha of the compressor, or of its scaled version when it is unbiased."""
    if compressor.unbiased:
        return 1 / (1 + unbiased_omega(compressor, dim))
    alpha = compressor.alpha(dim)
    if alpha is None:
        raise ValueError(
            f"error feedback needs a contractive compressor and {compressor!r} states no alpha: "
            "take TopK (compressor=topk) or ScaledSign (compressor=scaled_sign)"
        )
    return alpha


def theta_beta(alpha: float) -> tuple[float, float]:
    """Theta = 1 - sqrt(1 - alpha) and beta = (1 - alpha)/theta, the best choice in the module."""
    theta = 1 - math.sqrt(1 - alpha)
    return theta, (1 - alpha) / theta


def scaled(compressor: Compressor, message: Array) -> Array:
    """The message of an unbiased compressor divided by 1 + omega, which makes it contractive."""
    if not compressor.unbiased:
        return message
    omega = unbiased_omega(compressor, message.shape[-1])
    return message / (1 + omega) if omega > 0 else message


def send_contractive(
    problem: Problem, compressor: Compressor, vectors: Array, key: Key, workers: Index | None = None
) -> Array:
    """What the server receives for the vectors (n, d) of the workers: contractive messages."""
    return scaled(compressor, problem.send(compressor, vectors, key, workers))
