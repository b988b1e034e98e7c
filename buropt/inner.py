"""`LinearLoops`: many steps of a stochastic method on a generalized linear model in one call.

Of a loss phi(a_j'x, y_j) over sparse rows, the gradient phi'(a_j'x) a_j is known by one number. A
step then costs O(nonzeros of the row) and not O(dim): the coordinates that the row does not touch
all move by the same rule, which is made up for when they are next needed. Methods keep one number
a sample instead of a gradient.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from buropt.objective import Array

if TYPE_CHECKING:
    from buropt.oracle import Oracle


class LinearLoops:
    """Inner loops for f(x) = (1/N) sum_j phi(a_j'x, y_j) + (l2/2) |x|^2 + l1 |x|_1.

    All arrays are C-contiguous, of the oracle's dtype, and changed in place. `idx` lists samples,
    one for each step. Results agree with steps on all coordinates to rounding. Ctrl-C is heard
    between blocks of steps; what is done then is complete.

    Parameters
    ----------
    oracle : Oracle
        Of a loss that depends on x through the product with a CSR row alone, and on other data
        through one number each. Its regularizer takes no part: l2 and l1 are given with each call.

    Raises
    ------
    ValueError
        If the oracle is of another kind, or weighs its samples.
    """

    def __init__(self, oracle: Oracle) -> None:
        self.dim = oracle.dim
        self.n_samples = oracle.n_samples
        self.dtype = oracle.dtype
        self._loops = oracle._linear_loops()

    def slopes(self, x: Array) -> tuple[Array, Array]:
        """Slopes phi'(a_j'x), shape (N,), and their mean gradient, shape (dim,), at x (dim,)."""
        slopes, mean = np.empty(self.n_samples, self.dtype), np.empty(self.dim, self.dtype)
        self._loops.slopes(x, slopes, mean)
        return slopes, mean

    def saga(
        self,
        x: Array,
        table: Array,
        mean: Array,
        idx: ArrayLike,
        step_size: float,
        *,
        l2: float = 0.0,
        l1: float = 0.0,
    ) -> None:
        """Steps of SAGA (arXiv:1407.0202) whose table holds a number for each sample.

        With s = phi'(a_j'x):  x <- prox(x - step_size ((s - table_j) a_j + mean + l2 x)), then
        table_j <- s, and mean <- (1/N) sum_j table_j a_j. The l2 term is exact, not from the table.

        Parameters
        ----------
        x : ndarray, shape (dim,)
        table : ndarray, shape (N,)
        mean : ndarray, shape (dim,)
            Of the table; `slopes` gives both at a point.
        idx : integer array, shape (steps,)
        step_size, l2, l1 : float
        """
        _check(step_size, l2, l1)
        self._loops.saga(idx, step_size, l2, l1, x, table, mean)

    def svrg(
        self,
        x: Array,
        anchor: Array,
        mean: Array,
        idx: ArrayLike,
        step_size: float,
        *,
        l2: float = 0.0,
        l1: float = 0.0,
    ) -> None:
        """Steps of SVRG's inner loop (Johnson and Zhang 2013).

        x <- prox(x - step_size ((phi'(a_j'x) - anchor_j) a_j + mean + l2 x)).

        Parameters
        ----------
        x : ndarray, shape (dim,)
        anchor : ndarray, shape (N,)
        mean : ndarray, shape (dim,)
            `slopes` at the snapshot; not changed.
        idx : integer array, shape (steps,)
        step_size, l2, l1 : float
        """
        _check(step_size, l2, l1)
        self._loops.svrg(idx, step_size, l2, l1, anchor, mean, x)

    def sarah(
        self, x: Array, v: Array, idx: ArrayLike, step_size: float, *, l2: float = 0.0
    ) -> None:
        """Steps of SARAH's and PAGE's recursion (arXiv:1703.00102, arXiv:2008.10898).

        With x' = x + step_size v, the point before x:  v <- v + mean_j (phi'(a_j'x) - phi'(a_j'x'))
        a_j - l2 step_size v, and x <- x - step_size v. An epoch's first step, v = grad f(x0) and
        x = x0 - step_size v, is the caller's.

        Parameters
        ----------
        x, v : ndarray, shape (dim,)
        idx : integer array, shape (steps,) or (steps, b)
            A row for each step.
        step_size, l2 : float
        """
        _check(step_size, l2)
        self._loops.sarah(idx, step_size, l2, x, v)


def _check(step_size: float, l2: float, l1: float = 0.0) -> None:
    for name, number in (("step_size", step_size), ("l2", l2), ("l1", l1)):
        if not 0 <= number < math.inf:
            raise ValueError(f"{name} must be a finite number >= 0, got {number!r}")
