"""What a peer can be asked for. Whatever a peer has not, it refuses with a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from experiments.bench import peers
from experiments.bench.contest import Contestant, NotApplicableError

Function = Callable[..., Any]


class Framework:
    """A peer, and the operations in which functions for it are written.

    Functions are called as ``f(ops, x, *data)`` with `ops` the framework; parameters of networks
    are nested dicts and lists.
    """

    name = "?"

    # Contestants

    def value_and_grad(self, f: Function, x: Any) -> Contestant:
        """Value and gradient at `x`, a NumPy vector of float64, as two results of a call."""
        raise self.cannot("value and gradient of a function of a vector")

    def gradient(self, f: Function, x: Any, data: Sequence[Any] = ()) -> Contestant:
        """The gradient at `x` of a function with data, which the framework's own `array` made."""
        raise self.cannot("gradient of a function of arrays")

    def hvp(self, f: Function, x: Any, v: Any) -> Contestant:
        """The product of the Hessian at `x` with `v`."""
        raise self.cannot("Hessian products")

    def step(self, loss: Function, params: Any, step_size: float, data: Any) -> Contestant:
        """One step ``params -= step_size * gradient``; the answer is the gradient at the start."""
        raise self.cannot("gradient of a network")

    def pointwise(self, f: Function, points: Any) -> Contestant:
        """Value and gradient of f(ops, a, b) at each row of `points`, (n, 2): arrays (n,) of each.

        The answer is values, derivatives by a, derivatives by b.
        """
        raise self.cannot("values and gradients at many points")

    # Of many workers at once, for peers that have `vmap` of gradients

    def jit(self, function: Function) -> Function:
        """Compile, where the peer compiles."""
        raise self.cannot("vmap of gradients and top-k of rows")

    def wait(self, result: Any) -> Any:
        """The result, when it is there."""
        raise NotImplementedError

    def gradient_of_each(self, loss: Function, like: Any) -> Function:
        """Of (x, *data): the gradient for each part of the data, (parts, d), in `like`'s order."""
        raise self.cannot("vmap of gradients")

    def uniform(self, shape: tuple[int, ...], draw: Any) -> Any:
        """Random numbers; others for every `draw`."""
        raise NotImplementedError

    def keep(self, g: Any, size: Any, k: int) -> Any:
        """Of every row of `g` the entries with the k largest sizes; zeros elsewhere."""
        raise NotImplementedError

    def cannot(self, what: str) -> NotApplicableError:
        """The refusal of something that the peer does not have."""
        return NotApplicableError(f"no {what}")

    # Data

    def array(self, values: Any) -> Any:
        """A NumPy array, floats or integers, as the framework's; dtypes stay."""
        return values

    def tree(self, params: Any) -> Any:
        """`array` of every leaf of nested parameters."""
        arrays = (self.array(leaf) for leaf in peers.leaves(params, params))
        return peers.nested(arrays, params)

    def sparse(self, matrix: Any) -> Any:
        """A SciPy CSR matrix as the framework's sparse matrix."""
        raise self.cannot("sparse matrices")

    # Operations

    def rows(self, x: Any) -> Any:
        """(b, ...) as (b, -1)."""
        return x.reshape(x.shape[0], -1)


class NumpyLike(Framework):
    """A peer whose arrays and functions are called as NumPy's."""

    np: Any  # the module with the functions

    def relu(self, x: Any) -> Any:
        return self.np.maximum(x, 0)

    def tanh(self, x: Any) -> Any:
        return self.np.tanh(x)

    def sum(self, x: Any) -> Any:
        return x.sum()

    def matvec(self, matrix: Any, x: Any) -> Any:
        return matrix @ x

    def take(self, array: Any, indices: Any) -> Any:
        return array[indices]

    def row_sums(self, x: Any) -> Any:
        return x.sum(1)
