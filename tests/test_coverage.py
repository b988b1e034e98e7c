"""docs/coverage.md tells the truth: what it lists as supported is, and what it refuses raises."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import scipy

from buropt.trace import Trace, coverage
from buropt.trace.dispatch import supported_functions
from buropt.trace.hints import HINTS

PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"
ROWS = coverage.coverage()
FUNCTIONS = {
    f"{section}.{name}": function
    for section in ("np", "np.linalg", "np.fft", "scipy.special")
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


def test_supported_functions_are_those_of_the_page():
    listed = {row.name for row in ROWS if row.status == "supported"}
    assert {name for name in supported_functions() if name in FUNCTIONS} <= listed


def test_no_hint_for_what_is_supported():
    supported = {name.removeprefix("np.") for name in supported_functions()}
    assert not supported & set(HINTS)
