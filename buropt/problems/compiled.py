"""Problems of any loss that can be compiled, with estimated constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from buropt.data.dataset import Array
from buropt.names import named
from buropt.oracle import Oracle
from buropt.problems.base import Problem
from buropt.problems.estimated import estimated_constants
from buropt.problems.samples import Split, prepare, require_weight, ridge


def from_oracle(
    oracle: Oracle, *, name: str = "compiled", points: int = 6, convex: bool | None = None
) -> Problem:
    """The problem of an oracle, which starts at the oracle's x0.

    Parameters
    ----------
    oracle : Oracle
        With the workers among whom the samples are split.
    name : str
    points : int
        At which Hessians are looked at.
    convex : bool, optional
        Whether the losses of all samples are convex; None: if the Hessians at the points are.

    Returns
    -------
    Problem
        All constants are estimates, see `buropt.problems.estimated`, and logged. f_star is solved
        for if f is convex and has mu > 0.
    """
    constants = estimated_constants(oracle, points=points, convex=convex)
    return Problem(name, oracle, oracle.x0, constants)


def compiled(
    A: Any,
    y: Array,
    *,
    loss: Callable[[Any, Any, Any], Any] | str,
    l2: float = 0.0,
    points: int = 6,
    convex: bool | None = None,
    split: Split = None,
    dtype: str | None = None,
    threads: int | None = None,
) -> Problem:
    """f(x) = (1/N) sum_j loss(x, a_j, y_j) + (l2/2) |x|^2 for a loss of your own.

    Parameters
    ----------
    A : ndarray or CSR array, shape (n_samples, dim)
    y : ndarray, shape (n_samples,)
    loss : callable, or str
        ``loss(x, a, y)`` of one sample in NumPy, x (dim,); or its name, "module.function".
    l2 : float
        Weight of the regularizer, 0 or more.
    points, convex
        As for `from_oracle`.
    split : None, int or index arrays
        Samples of each worker; None: one worker; a number: contiguous blocks.
    dtype : {"float64", "float32"}, optional
        Of the computation; that of `A` by default.
    threads : int, optional

    Returns
    -------
    Problem
        Starts at 0. All constants are estimates.

    Raises
    ------
    ValueError
        If there is no such function, l2 is negative, shapes do not fit, or the split is no
        partition.
    """
    samples = prepare("compiled", A, y, split)
    require_weight("compiled", "l2", l2)
    if isinstance(loss, str):
        loss = named("problem.loss", loss, "a function such as my_module.my_loss")
    oracle = samples.compile(loss, ridge(l2), dtype, threads)
    return from_oracle(oracle, points=points, convex=convex)
