"""docs/coverage.md tells the truth: what it lists as supported is, and what it refuses raises."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import scipy
import scipy.fft
import scipy.linalg
import scipy.special

import buropt as bo
from buropt.trace import Trace, coverage
from buropt.trace.dispatch import supported_functions
from buropt.trace.hints import HINTS

PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"
ROWS = coverage.coverage()
FUNCTIONS = {
    f"{section}.{name}": function
    for section in coverage._SECTIONS
    for name, function in coverage.public_functions(section)
}


def test_the_page_is_fresh():
    """Of other versions of NumPy and SciPy, what both have must agree."""
    text = PAGE.read_text()
    if f"NumPy {np.__version__} and SciPy {scipy.__version__}" in text:
        assert text == coverage.page()
    listed = dict(re.findall(r"^\| `([\w.]+)` \| (\w+) \|", text, re.MULTILINE))
    assert len(listed) > 700
    for row in ROWS:
        name = row.name.rpartition(".")[2]
        alias = getattr(FUNCTIONS[row.name], "__name__", name) != name  # row_stack of NumPy 1
        assert alias or listed.get(row.name, row.status) == row.status, row.name


def call_on_tracers(function, x):
    if isinstance(function, np.ufunc):
        return function(*[x] * function.nin)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # written in C, and this version gives no signature: ask as NumPy would
        return x.__array_function__(function, (type(x),), (x,), {})
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return function(*([x for p in positional if p.default is p.empty] or [x]))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # np.product, of NumPy 1
@pytest.mark.parametrize("name", [row.name for row in ROWS if row.status == "refused"])
def test_what_is_refused_raises(name):
    function = FUNCTIONS[name]
    with Trace() as trace:
        x = trace.input("x", (2, 2))
        with pytest.raises((TypeError, ValueError)) as error:
            call_on_tracers(function, x)
    # Those that ask NumPy's way give our own error; SciPy checks some arguments before.
    if coverage.asks_its_arguments(function) and name not in ("np.savez", "np.savez_compressed"):
        assert "cannot be traced" in str(error.value) or "Instead:" in str(error.value)
    if name.startswith("scipy."):
        assert not str(error.value).startswith("a traced value")  # but with a function's name


PYTHON_FUNCTIONS = {  # by name, with the arguments that a user would give
    "scipy.special.polygamma": lambda x: scipy.special.polygamma(1, x),
    "scipy.special.multigammaln": lambda x: scipy.special.multigammaln(x[0] + 5, 2),
    "scipy.special.spherical_jn": lambda x: scipy.special.spherical_jn(0, x),
    "scipy.special.factorial": lambda x: scipy.special.factorial(x),
    "scipy.special.comb": lambda x: scipy.special.comb(x, 2),
    "scipy.special.assoc_laguerre": lambda x: scipy.special.assoc_laguerre(x, 2, 1),
    "scipy.special.legendre_p": lambda x: scipy.special.legendre_p(2, x),
    "scipy.linalg.solve": lambda x: scipy.linalg.solve(np.eye(3), x),
    "scipy.linalg.expm": lambda x: scipy.linalg.expm(x[:, None] * x),
    "scipy.linalg.cholesky": lambda x: scipy.linalg.cholesky(np.diag(x)),
    "scipy.linalg.toeplitz": lambda x: scipy.linalg.toeplitz(x),
    "scipy.fft.dct": lambda x: scipy.fft.dct(x),
}


@pytest.mark.parametrize("name", PYTHON_FUNCTIONS)
def test_python_functions_are_refused_by_their_names(name):
    """They convert their arguments first, in themselves, a decorator or a function below them."""
    with Trace() as trace, pytest.raises(bo.UnsupportedOpError) as error:
        PYTHON_FUNCTIONS[name](trace.input("x", (3,)))
    assert str(error.value).startswith(f"{name} cannot be traced. Raised while tracing ")
    assert f"{Path(__file__).name}:" in str(error.value)


def test_numpy_functions_in_python_are_named():
    with Trace() as trace, pytest.raises(bo.TraceError, match=r"^np\.hanning: a traced value"):
        np.hanning(trace.input("x", ()))


def test_supported_functions_are_those_of_the_page():
    listed = {row.name for row in ROWS if row.status == "supported"}
    assert {name for name in supported_functions() if name in FUNCTIONS} <= listed


def test_no_hint_for_what_is_supported():
    supported = {name.removeprefix("np.") for name in supported_functions()}
    assert not supported & set(HINTS)
