"""Inner loops: many steps of a stochastic method in one call of the compiled core.

Of a loss phi(a_j'x, y_j) over sparse rows, the gradient phi'(a_j'x) a_j is known by one number. A
step then costs O(nonzeros of the row) and not O(dim): what the step does to the coordinates that
the row does not touch is the same for all, and is made up for later (`Lazy`). Methods keep one
number a sample instead of a gradient. This is `LinearLoops`; every other loss has `GeneralLoops`,
whose steps are the NumPy text of the methods, bit by bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from buropt.nodes import nodes_of
from buropt.oracle.objective import Array, Objective

if TYPE_CHECKING:
    from buropt import _core
    from buropt.oracle import Oracle

SLICE = 0.05  # seconds of a call, after which Python hears Ctrl-C
Prox: TypeAlias = tuple[str, float, float]


class Lazy(NamedTuple):
    """A point of which some coordinates have steps to catch up with; cpp/inner says how.

    Attributes
    ----------
    p, q : ndarray, shape (dim,)
        x = a p + b q; with an l1 term p is x without the steps to come. q is the mean gradient
        without the regularizer's (SVRG, SAGA), or the estimate up to a factor (SARAH).
    scales : ndarray of float64, shape (3,)
        a, b, and the steps since all coordinates were caught up with.
    made : ndarray of int32, shape (dim,)
        With an l1 term, the steps made since then.
    """

    p: Array
    q: Array
    scales: NDArray[np.float64]
    made: NDArray[np.int32]

    @classmethod
    def at(cls, x: Array, q: Array) -> Lazy:
        """The state in which nothing is behind; copies."""
        return cls(x.copy(), q.copy(), np.array([1.0, 0.0, 0.0]), np.zeros(len(x), np.int32))

    def copy(self) -> Lazy:
        """A state of its own, for a call to change."""
        return Lazy(*(part.copy() for part in self))


class CoupledLazy(NamedTuple):
    """MiG's point z and the sum of those of an epoch, lazily; cpp/inner/coupled.h says how.

    Attributes
    ----------
    p, q, u : ndarray, shape (dim,)
        z = a p + b q, and the sum is e u + f p + g q.
    scales : ndarray of float64, shape (6,)
        a, b, e, f, g, and the steps since all coordinates were caught up with.
    """

    p: Array
    q: Array
    u: Array
    scales: NDArray[np.float64]

    @classmethod
    def at(cls, z: Array, q: Array) -> CoupledLazy:
        """The state at the begin of an epoch; copies."""
        return cls(z.copy(), q.copy(), np.zeros_like(z), np.array([1.0, 0, 1, 0, 0, 0]))

    def copy(self) -> CoupledLazy:
        """A state of its own, for a call to change."""
        return CoupledLazy(*(part.copy() for part in self))

    def point_and_sum(self) -> tuple[Array, Array]:
        """What it stands for, (dim,) each."""
        a, b, e, f, g, _ = self.scales.tolist()
        return a * self.p + b * self.q, e * self.u + f * self.p + g * self.q


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
        self.core, self._model = oracle._linear_loops()
        self._anchor: tuple[bytes, Array] | None = None

    def slopes(self, x: Array) -> tuple[Array, Array]:
        """Slopes phi'(a_j'x), shape (N,), and their mean gradient, shape (dim,), at x (dim,)."""
        slopes = self._model.slopes(x)
        return slopes, self.mean_gradient(slopes)

    def mean_gradient(self, slopes: Array) -> Array:
        """The mean over all samples of slope_j a_j, (dim,), of slopes (N,)."""
        mean = np.empty(self.dim, self.dtype)
        self.core.mean_gradient(slopes, mean)
        return mean

    def anchor(self, w: Array) -> Array:
        """The slopes at a snapshot, (N,); those of the last one are kept. Do not change them."""
        point = w.tobytes()
        if self._anchor is None or self._anchor[0] != point:
            self._anchor = point, self._model.slopes(w)
        return self._anchor[1]

    def point(self, lazy: Lazy, step_size: float, l2: float, l1: float) -> Array:
        """The point that a lazy state of SGD, SVRG or SAGA stands for, (dim,)."""
        x = np.empty(self.dim, self.dtype)
        self.core.point(step_size, l2, l1, *lazy, x)
        return x

    def point_and_estimate(self, lazy: Lazy) -> tuple[Array, Array]:
        """X and v, (dim,), that a lazy state of SARAH stands for."""
        x, v = np.empty(self.dim, self.dtype), np.empty(self.dim, self.dtype)
        self.core.point_and_estimate(*lazy[:3], x, v)
        return x, v

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
        rule = _rule(step_size, l2, l1)

        def steps(idx: Any, lazy: Lazy) -> int:
            return self.core.saga(idx, None, *rule, table, lazy.p, mean, *lazy[2:], SLICE)

        self._in_place(x, mean, idx, steps, rule)

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
        rule = _rule(step_size, l2, l1)

        def steps(idx: Any, lazy: Lazy) -> int:
            return self.core.svrg(idx, None, *rule, anchor, lazy.p, mean, *lazy[2:], SLICE)

        self._in_place(x, mean, idx, steps, rule)

    def sarah(
        self, x: Array, v: Array, idx: ArrayLike, step_size: float, *, l2: float = 0.0
    ) -> None:
        """Steps of SARAH's and PAGE's recursion (arXiv:1703.00102, arXiv:2008.10898).

        x' <- x - step_size v,  v <- v + mean_j (phi'(a_j'x') - phi'(a_j'x)) a_j - l2 step_size v.

        Parameters
        ----------
        x, v : ndarray, shape (dim,)
        idx : integer array, shape (steps,) or (steps, b)
            A row for each step.
        step_size, l2 : float
        """
        rule = _rule(step_size, l2, 0.0)
        lazy = Lazy.at(x, v)
        try:
            _all_steps(idx, lambda part: self.core.sarah(part, *rule[:2], *lazy[:3], SLICE))
        finally:
            self.core.point_and_estimate(*lazy[:3], x, v)

    def _in_place(
        self,
        x: Array,
        mean: Array,
        idx: ArrayLike,
        steps: Callable[[Any, Lazy], int],
        rule: tuple[float, float, float],
    ) -> None:
        if np.may_share_memory(x, mean):
            raise ValueError("mean must not share memory with x")
        lazy = Lazy.at(x, mean)
        try:
            _all_steps(idx, lambda part: steps(part, lazy))
        finally:
            self.core.point(*rule, lazy.p, mean, *lazy[2:], x)


class InnerLoops:
    """The compiled loops of a problem f + psi; what there is none for is None.

    Parameters
    ----------
    oracle : Oracle
    prox : tuple, optional
        The prox of psi as `Psi.kernel` gives it; ("none", 0, 0) for none.
    """

    def __init__(self, oracle: Oracle, prox: Prox | None) -> None:
        self._oracle = oracle
        self._prox = prox
        self._general: dict[bool, _core.GeneralLoops] = {}
        self.l1: float | None = None
        if prox is not None and prox[0] in ("none", "l1"):
            self.l1 = prox[1]

    @cached_property
    def l2(self) -> float | None:
        """The l2 of the regularizer (l2/2) |x|^2; None if it is another one."""
        return ridge_weight(self._oracle._objective)

    @cached_property
    def _linear(self) -> LinearLoops | None:
        try:
            return LinearLoops(self._oracle)
        except ValueError:
            return None

    def linear(self, step_size: float, batch_size: int) -> LinearLoops | None:
        """The loops of linear models, if they have this step; the l2 of them is `l2`."""
        if self.l1 is None or self.l2 is None or step_size * self.l2 > 0.5:
            return None
        return self._linear if batch_size == 1 or self.l1 == 0 else None

    @property
    def has_general(self) -> bool:
        """Whether there are loops for the loss as it is, and for the prox."""
        oracle = self._oracle
        return self._prox is not None and oracle.n_samples > 0 and oracle._weights is None

    def general_loops(self, weighted: bool = False) -> tuple[_core.GeneralLoops, Prox]:
        """The loops of any loss, and the prox to pass to them; if `has_general`."""
        if self._prox is None:
            raise ValueError("this prox is not in the compiled core")
        if weighted not in self._general:
            self._general[weighted] = self._oracle._general_loops(weighted)
        return self._general[weighted], self._prox


def ridge_weight(objective: Objective) -> float | None:
    """The c of a regularizer that is (c/2) |x|^2, however it is written; 0 without regularizer."""
    if objective.penalty is None:
        return 0.0
    nodes = nodes_of(objective.builder, [objective.penalty])
    if nodes is None or len(objective.params) != 1:
        return None
    # Of every node what it is, and its factor: x, x^2 by coordinates, x'x, or a constant.
    found: dict[int, tuple[str, float]] = {}
    for number, node in nodes.items():
        operands = [found[k] for k in node.operands]
        kinds = [kind for kind, _ in operands]
        factor = math.prod(factor for _, factor in operands)
        one = math.prod(node.shape) == 1
        match node.op, kinds:
            case "input", []:
                found[number] = "x", 1.0
            case "constant", [] if node.value is not None and node.value.size == 1:
                found[number] = "constant", float(node.value.item())
            case "reshape", [_]:
                found[number] = operands[0]
            case "multiply", ["x", "x"]:
                found[number] = "square", factor
            case "square", ["x"]:
                found[number] = "square", factor**2
            case ("matmul", ["x", "x"]) | ("sum", ["square"]) if one:
                found[number] = "sum", factor
            case "multiply", ["constant", kind] | [kind, "constant"]:
                found[number] = kind, factor
            case "add", ["sum", "sum"]:
                found[number] = "sum", operands[0][1] + operands[1][1]
            case _:
                return None
    kind, factor = found[objective.penalty]
    return 2 * factor if kind == "sum" and factor >= 0 else None


def _all_steps(idx: ArrayLike, steps: Callable[[Any], int]) -> None:
    """Call until every step is made. Between two calls Python looks at signals."""
    rest = np.asarray(idx)
    while len(rest):
        rest = rest[steps(rest) :]


def _rule(step_size: float, l2: float, l1: float) -> tuple[float, float, float]:
    for name, number in (("step_size", step_size), ("l2", l2), ("l1", l1)):
        if not 0 <= number < math.inf:
            raise ValueError(f"{name} must be a finite number >= 0, got {number!r}")
    return float(step_size), float(l2), float(l1)
