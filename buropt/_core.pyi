"""The compiled core of buropt; use the names in buropt itself."""

from collections.abc import Callable, Iterable, Sequence
import enum
import os
from typing import (
    Annotated,
    Any,
    NoReturn,
    SupportsFloat,
    TypeVar,
    overload
)

import numpy
from numpy.typing import NDArray


def default_threads() -> int:
    """
    Threads that this process may use: BUROPT_NUM_THREADS, or its CPU affinity and quota.
    """

class Graph:
    """An immutable list of nodes in SSA form."""

    def __str__(self) -> str: ...

    @property
    def n_nodes(self) -> int: ...

    @property
    def dtype(self) -> str: ...

    @property
    def input_names(self) -> list[str]: ...

    @property
    def output_names(self) -> list[str]: ...

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """The nodes in order, operands by their numbers: one dict each."""

    @property
    def outputs(self) -> list[tuple[str, int]]:
        """Names of the outputs, and the numbers of their nodes."""

    def to_dot(self) -> str:
        """The graph in Graphviz's DOT language."""

    def draw(self, path: str | os.PathLike[str]) -> None:
        """
        Draw the graph into a .png, .svg or .pdf file; of at most 2000 nodes (ValueError).
        """

    def to_bytes(self) -> bytes:
        """The graph as bytes that `from_bytes` reads."""

    @staticmethod
    def from_bytes(data: bytes, name: str = 'the data') -> Graph:
        """
        Read what `to_bytes` gave. `name` stands for it in error messages (ValueError).
        """

    def __getstate__(self) -> bytes: ...

    def __setstate__(self, arg: bytes, /) -> None: ...

    def __copy__(self) -> Graph: ...

    def __deepcopy__(self, memo: object) -> Graph: ...

class Builder:
    """Appends nodes to a graph of one float dtype."""

    def __init__(self, dtype: str) -> None: ...

    @property
    def dtype(self) -> str: ...

    def input(self, name: str, shape: Sequence[int], batched: bool = False) -> int: ...

    def csr_input(self, name: str, n_features: int) -> int: ...

    def constant(self, value: object) -> int: ...

    def emit(self, op: str, inputs: Sequence[int], attributes: dict = {}) -> int: ...

    def add_graph(self, graph: Graph, inputs: Sequence[int]) -> list[int]: ...

    def shape(self, arg: int, /) -> tuple: ...

    def batched(self, arg: int, /) -> bool: ...

    def is_csr(self, arg: int, /) -> bool: ...

    def constant_value(self, node: int) -> object: ...

    def definition(self, node: int) -> tuple[str, list[int]]:
        """Name of the primitive, empty for an input or constant; the operands."""

    def depends_on(self, output: int, inputs: Sequence[int]) -> list[bool]: ...

    def grad(self, output: int, wrt: Sequence[int]) -> list[int]: ...

    def vjp(self, outputs: Sequence[int], cotangents: Sequence[int], wrt: Sequence[int], per_sample: bool = False) -> list[int]: ...

    def jvp(self, outputs: Sequence[int], wrt: Sequence[int], tangents: Sequence[int]) -> list[int]: ...

    def restrict(self, nodes: Sequence[int], places: Sequence[int]) -> list[int]: ...

    def build(self, outputs: Sequence[int], names: Sequence[str]) -> Graph: ...

def ops() -> list:
    """The primitives: one dict each."""

def elementwise(name: str, *arrays) -> object:
    """One elementwise primitive on contiguous arrays of one shape and dtype."""

class SlicedCopy:
    """
    What programs over the same CSR array share: copies of it that are made when a full batch needs them.
    """

    def __init__(self) -> None: ...

class Evaluator:
    """Value and gradient of an objective over data."""

    def __init__(self, graph: Graph, inputs: Sequence[tuple[str, int, int]], outputs: Sequence[tuple[int, int]], x_shape: Sequence[int], dense: list, csr: list, n_samples: int, threads: int) -> None: ...

    def evaluate(self, x: object, idx: object, weights: object, out: object) -> Any: ...

    def step(self, x: object, step_size: float, idx: object, weights: object) -> None: ...

    def evaluate_workers(self, x: object, idx: object, weights: object, out: object) -> Any: ...

    def set_workers(self, shards: list) -> None: ...

    def describe(self) -> dict: ...

class BoundCall:
    """A call on fixed arrays."""

    def __call__(self) -> float: ...

    def __init__(self, evaluator: object, x: object, g: object | None, weights: object | None) -> None: ...

    def __reduce__(self) -> NoReturn: ...

_Method = TypeVar("_Method", bound=Callable[..., Any])
def QuickMethod(function: _Method, /) -> _Method: ...

class Query:
    """
    A graph over data: arrays in, arrays out, for the batch or sample by sample.
    """

    def __init__(self, graph: Graph, arguments: Sequence[tuple[str, Sequence[int], bool]], results: Sequence[tuple[str, Sequence[int], bool]], inputs: Sequence[tuple[str, int, int]], outputs: Sequence[tuple[int, int]], dense: list, csr: list, n_samples: int, threads: int) -> None: ...

    def __call__(self, arrays: list, idx: object | None, weights: object | None, scale: float, out: list) -> object: ...

    def describe(self) -> dict: ...

    @property
    def work_per_sample(self) -> int: ...

class Program:
    """A plain function of arrays."""

    def __init__(self, graph: Graph) -> None: ...

    def __call__(self, *arrays) -> list: ...

class QuickPrograms:
    """Compiled programs by the arguments they are for."""

    def __init__(self) -> None: ...

    def add(self, arguments: tuple[Any, ...], run: Callable[..., Any], program: Program | None, is_tuple: bool, takes_out: bool) -> None:
        """
        Adds a program for arguments like these, if they are arrays and floats only.
        """

    def clear(self) -> None: ...

class QuickCall:
    """A function that is a program for some arguments."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __init__(self, programs: QuickPrograms, otherwise: Callable[..., Any]) -> None: ...

def philox4x32(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """
    One block of Philox4x32-10: four words for a counter of four and a key of two.
    """

def random_uniform(seed: int, round: int, purpose: int) -> float:
    """A number in [0, 1), a multiple of 2**-53."""

def random_integers(seed: int, round: int, purpose: int, low: int, count: int, out: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], rounds: int = 1) -> None:
    """
    Fill out with independent integers, uniform on low .. low + count - 1, count >= 1; an equal part of it from each of the rounds.
    """

def random_subsets(seed: int, round: int, purpose: int, n: int, out: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    Fill the rows of out with uniform subsets of 0 .. n - 1, one for each round.
    """

class Places:
    """Ascending ends (n,), among which points are looked up."""

    def __init__(self, ends: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def __len__(self) -> int: ...

    @property
    def total(self) -> float:
        """The last of the ends."""

    def find(self, points: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> None:
        """For each point, below the total, the first i with ends[i] > point."""

def random_uniforms(seed: int, round: int, purpose: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Fill out with the number in [0, 1) of each round."""

class Compressor:
    """A map of vectors, and the message that carries its value."""

    def check(self, d: int) -> None:
        """Raises if it does not fit vectors of d entries."""

    def compress(self, x: object, seed: int, round: int, purpose: int, out: object, bits: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')]) -> None:
        """
        Compress the rows of x (n, d) into out (n, d), each row's message size into bits (n,).
        """

    def encode(self, x: object, seed: int, round: int, purpose: int, worker: int) -> bytes:
        """The bytes of one worker's message for x (d,)."""

    @overload
    def decode(self, payload: bytes, seed: int, round: int, purpose: int, worker: int, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def decode(self, payload: bytes, seed: int, round: int, purpose: int, worker: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """Read a message into out (d,)."""

class Selector(Compressor):
    """A compressor that keeps entries."""

    def kept(self, d: int) -> int:
        """How many of d entries a message carries, at most."""

    def choose(self, d: int, n_workers: int, seed: int, round: int, purpose: int) -> tuple:
        """
        The entries (total,) that workers keep, and where each worker's begin (n_workers + 1,); of a compressor that does not look at the vector.
        """

    @overload
    def send(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], entries: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], bits: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    @overload
    def send(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], entries: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], bits: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """The messages of workers with such a choice of entries."""

def identity() -> Selector: ...

def rand_k(k: int, scaled: bool, shared_seed: bool) -> Selector: ...

def rand_seq_k(k: int, shared_seed: bool) -> Selector: ...

def top_k(k: int) -> Selector: ...

def top_lek(k: int) -> Selector: ...

def block_top_k(k: int, block_size: int) -> Selector: ...

def perm_k(n_workers: int) -> Selector: ...

def bernoulli(p: float, scaled: bool) -> Selector: ...

class Norm(enum.Enum):
    one = 0

    two = 1

    inf = 2

def natural_compression() -> Compressor: ...

def random_dithering(levels: int) -> Compressor: ...

def terngrad() -> Compressor: ...

def natural_dithering(levels: int, norm: Norm) -> Compressor: ...

def sign() -> Compressor: ...

def scaled_sign() -> Compressor: ...

def symmetric_rank_r(rank: int) -> Compressor: ...

def symmetric_power_sgd(rank: int) -> Compressor: ...

def rank_r(rank: int, n_rows: int) -> Compressor: ...

def power_sgd(rank: int, n_rows: int) -> Compressor: ...

def composition(first: Selector, second: Compressor) -> Compressor: ...

def scaled(compressor: Compressor, factor: float) -> Compressor: ...

def parse_libsvm(text: bytes, name: str, *, n_features: int | None = None, zero_based: bool = False, single_precision: bool = False, query_id: bool = False) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int32], dict(shape=(None,))], Annotated[NDArray[numpy.float32], dict(shape=(None,))] | Annotated[NDArray[numpy.float64], dict(shape=(None,))], int, Annotated[NDArray[numpy.int64], dict(shape=(None,))] | None]:
    """
    Parse LIBSVM text: (labels, indptr, indices, values, n_features, query ids or None).

    `name` stands for the text in error messages (ValueError).
    """

class LinearLoops:
    """Steps of stochastic methods on a linear model over sparse rows."""

    def __init__(self, graph: Graph, sources: Sequence[tuple[str, int]], dense: list, csr: list, n_samples: int) -> None: ...

    @property
    def applies(self) -> bool: ...

    def sgd(self, idx: object, weights: object | None, step_size: float, l2: float, l1: float, p: object, q: object, scales: object, made: object, seconds: float) -> int: ...

    def svrg(self, idx: object, weights: object | None, step_size: float, l2: float, l1: float, anchor: object, p: object, q: object, scales: object, made: object, seconds: float) -> int: ...

    def saga(self, idx: object, weights: object | None, step_size: float, l2: float, l1: float, table: object, p: object, q: object, scales: object, made: object, seconds: float) -> int: ...

    def sarah(self, idx: object, step_size: float, l2: float, p: object, q: object, scales: object, seconds: float) -> int: ...

    def mig(self, idx: object, weights: object | None, theta: float, step_size: float, mu: float, l2: float, anchor: object, w: object, q: object, p: object, u: object, scales: object, seconds: float) -> int: ...

    def point(self, step_size: float, l2: float, l1: float, p: object, q: object, scales: object, made: object, x: object) -> None: ...

    def point_and_estimate(self, p: object, q: object, scales: object, x: object, v: object) -> None: ...

    def mean_gradient(self, slopes: object, mean: object) -> None: ...

class WorkerHessians:
    """Hessians of workers as packed triangles."""

    def __init__(self, dtype: str, dim: int, n_samples: int, dense: list, csr: list, shards: list, threads: int) -> None: ...

    def triangles(self, weights: object, penalty: object | None, workers: object, out: object) -> None: ...

    def learn(self, compressor: Selector, seed: int, round: int, purpose: int, weights: object | None, penalty: object | None, triangles: object | None, workers: object, alpha: float, estimates: object, mean: object, indices: Annotated[NDArray[numpy.uint32], dict(shape=(None, None), order='C', device='cpu')], sent: object, replaced: object, norms: object, errors: object | None) -> None: ...

def linear_loss(graph: Graph) -> tuple[int, list[int], Graph] | None:
    """
    Inputs that are the row of features and the other data of a linear model, and its slope.
    """

@overload
def solve_triangle(triangle: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)], shift: float, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C')]) -> None: ...

@overload
def solve_triangle(triangle: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', writable=False)], shift: float, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]) -> None:
    """
    x <- (A + shift I)^-1 x for the packed triangle of A; NaN if that is not positive definite.
    """

@overload
def triangle_products(triangles: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', writable=False)], x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C')]) -> None: ...

@overload
def triangle_products(triangles: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', writable=False)], x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C')]) -> None:
    """out (k, d) <- A_k x for the packed triangles of the A_k."""

class WorkerEntries:
    """Entries of the gradients of workers of a sparse linear model."""

    def __init__(self, dtype: str, dim: int, n_samples: int, csr: list, shards: list, threads: int) -> None: ...

    @property
    def has_patterns(self) -> bool: ...

    def products(self, x: object, out: object) -> None: ...

    def entries(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], s: object, t: object | None, share: float, out: object) -> None: ...

    def mean_of_messages(self, compressor: Selector, seed: int, round: int, purpose: int, s: object, t: object, share: float, penalty: object | None, out: object) -> int: ...

class GeneralLoops:
    """Steps of stochastic methods on any compiled loss."""

    def __init__(self, graph: Graph, inputs: Sequence[tuple[str, int, int]], outputs: Sequence[tuple[int, int]], dim: int, dense: list, csr: list, n_samples: int, threads: int) -> None: ...

    def sgd(self, idx: object, weights: object | None, step_sizes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', writable=False)], prox: tuple[str, float, float], x: object, seconds: float) -> int: ...

    def svrg(self, idx: object, weights: object | None, step_size: float, prox: tuple[str, float, float], w: object, full: object, x: object, seconds: float) -> int: ...

    def saga(self, idx: object, weights: object | None, step_size: float, prox: tuple[str, float, float], x: object, table: object, mean: object, seconds: float) -> int: ...

    def sarah(self, idx: object, step_size: float, x: object, v: object, seconds: float) -> int: ...

    def coupled(self, idx: object, weights: object | None, coupling: tuple[float, float, float, float], prox: tuple[str, float, float], w: object, full: object, y: object, z: object, mean: object | None, points: int, seconds: float) -> int: ...

class Value:
    """
    A number that remembers how it was computed, with micrograd's interface.

    For functions whose shape changes from call to call; what keeps its shape is faster with
    `bo.grad`. Operators and methods make a graph, `backward()` adds the derivatives of a Value
    by all that it was computed from to their `grad`. Numbers are float64, floating-point events
    raise nothing. `<` and its like compare data, `==` is identity, as is the hash.

    Parameters
    ----------
    data
        The number: of Python or NumPy.
    _children, _op
        At most two Values and a name, for drawings; nothing flows back to `_children`.
    label
        A name, for drawings.
    """
    def __init__(self, data: SupportsFloat, _children: Iterable[Value] = (), _op: str = "", label: str = "") -> None: ...
    data: float
    grad: float
    label: str
    @property
    def _prev(self) -> set[Value]: ...
    @property
    def _op(self) -> str: ...
    def backward(self) -> None: ...
    def _backward(self) -> None: ...
    def zero_grad(self) -> None: ...
    def __add__(self, other: Value | float) -> Value: ...
    def __radd__(self, other: float) -> Value: ...
    def __sub__(self, other: Value | float) -> Value: ...
    def __rsub__(self, other: float) -> Value: ...
    def __mul__(self, other: Value | float) -> Value: ...
    def __rmul__(self, other: float) -> Value: ...
    def __truediv__(self, other: Value | float) -> Value: ...
    def __rtruediv__(self, other: float) -> Value: ...
    def __pow__(self, other: Value | float) -> Value: ...
    def __rpow__(self, other: float) -> Value: ...
    def __neg__(self) -> Value: ...
    def __pos__(self) -> Value: ...
    def __abs__(self) -> Value: ...
    def __float__(self) -> float: ...
    def __lt__(self, other: Value | float) -> bool: ...
    def __le__(self, other: Value | float) -> bool: ...
    def __gt__(self, other: Value | float) -> bool: ...
    def __ge__(self, other: Value | float) -> bool: ...
    def relu(self) -> Value: ...
    def tanh(self) -> Value: ...
    def exp(self) -> Value: ...
    def log(self) -> Value: ...
    def sqrt(self) -> Value: ...
    def sin(self) -> Value: ...
    def cos(self) -> Value: ...
    def sigmoid(self) -> Value: ...
