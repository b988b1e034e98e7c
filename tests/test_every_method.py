"""What holds for every method that the command line can choose."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from methods import CLASSES, METHODS, copies, default_method, parabolas, run

from buropt.budget import Budget
from buropt.checkpoint import Checkpoint, Interval, Writer, read
from buropt.compressors import Identity
from buropt.history import History
from buropt.loop import minimize
from buropt.optim import FixedStep, Optimizer, catalogue
from buropt.packing import pack
from buropt.problems import (
    Problem,
    least_squares,
    logistic,
    logistic_nonconvex_reg,
    nonconvex_logistic,
    synthetic_quadratic,
)
from buropt.problems.constants import Constants
from buropt.prox import L1, Ball, Box, Psi, Simplex
from buropt.random import Key

EVERY = pytest.mark.parametrize("name", METHODS)


def samples() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((24, 4))
    y = np.where(A @ rng.standard_normal(4) + rng.standard_normal(24) > 0, 1.0, -1.0)
    return A, y


def small_logistic(dtype: str = "float64") -> Problem:
    A, y = samples()
    return logistic(A, y, l2=0.1, split=4, dtype=dtype)


PROBLEMS = {
    "logistic": small_logistic,
    "logistic without l2": lambda: logistic(*samples(), split=4),
    "least_squares": lambda: least_squares(*samples(), split=4),
    "quadratic": lambda: synthetic_quadratic(4, 5),
    "nonconvex_logistic": lambda: nonconvex_logistic(*samples(), split=4),
    "logistic_nonconvex_reg": lambda: logistic_nonconvex_reg(*samples(), split=4),
}


@EVERY
@pytest.mark.parametrize("problem", PROBLEMS)
def test_runs_or_refuses_in_a_sentence(name: str, problem: str) -> None:
    """And what runs makes progress; a method whose step is a habit is given time for it."""
    p = PROBLEMS[problem]()
    message = ""
    try:
        METHODS[name].theory(p)
    except ValueError as error:
        message = str(error)
    if message:
        assert re.fullmatch(
            rf"{type(METHODS[name]).__name__} has no theorem for this .*;.*", message
        )
        return
    states = run(METHODS[name], p, 150)
    assert p.metrics(states[-1].x)[0] < p.metrics(states[0].x)[0]


# O02: f_i(x) = i (x - i)^2 / 2, step 0.2, x0 = 0: after 10 steps x = 3 - 3/1024.

COMPRESSED = {"compressor": Identity()}
AS_GRADIENT_DESCENT: dict[str, dict[str, Any]] = {
    "gd": {},
    "sgd": {"batch_size": 4},
    "heavy_ball": {"momentum": 0.0},
    "nesterov": {"momentum": 0.0},
    "momentum": {"batch_size": 4, "momentum": 0.0},
    "nesterov_sgd": {"batch_size": None, "momentum": 0.0},
    "svrg": {"m": 1},
    "lsvrg": {"p": 1, "batch_size": 4},
    "saga": {"batch_size": 4},
    "sarah": {"m": 0},
    "page": {"p": 1},
    "spiderboost": {"q": 1},
    "spider": {"q": 1, "epsilon": 100.0},
    "rcd": {"scaled": False},
    "sega": {},
    "dcgd": COMPRESSED,
    "diana": COMPRESSED,
    "marina": COMPRESSED,
    "ef21": COMPRESSED,
    "ef14": COMPRESSED,
    "ef21_hb": {**COMPRESSED, "momentum": 0.0},
    "ef21_bc": {**COMPRESSED, "server_compressor": Identity()},
    "ef21_pp": {**COMPRESSED, "p": 1},
    "ef21_page": {**COMPRESSED, "p": 1},
    "ef21_w": COMPRESSED,
    "ef21_sgd": {**COMPRESSED, "batch_size": None},
    "ef21_sgdm": {**COMPRESSED, "batch_size": None, "eta": 1},
    "vr_marina": {**COMPRESSED, "p": 1},
    "pp_marina": {**COMPRESSED, "clients": 4},
    "vr_diana": {**COMPRESSED, "alpha": 0.3},
    "dasha": COMPRESSED,
    "dasha_page": {**COMPRESSED, "p": 1},
    "dasha_mvr": COMPRESSED,
    "lag": {"zeta": 0},
    "clag": {**COMPRESSED, "zeta": 0},
    "three_pc_v1": COMPRESSED,
    "three_pc_v2": COMPRESSED,
    "three_pc_v3": COMPRESSED,
    "three_pc_v4": COMPRESSED,
    "three_pc_v5": {**COMPRESSED, "p": 1},
    "cofig": COMPRESSED,
    "frecon": COMPRESSED,
    "fedavg": {"local_steps": 1},
    "scaffold": {"local_steps": 1},
    "proxskip": {"p": 1},
}
# Their steps are not a number times the gradient, or the average of old gradients even for d = 1.
NEVER_GRADIENT_DESCENT = {
    *("adgd", "polyak_step", "armijo", "wolfe", "newton", "cubic_newton"),
    *(
        "adagrad",
        "rmsprop",
        "adam",
        "adamw",
        "sps",
        "sag",
        "katyusha",
        "lkatyusha",
        "mig",
        "adiana",
        "fednl",
        "fednl_pp",
    ),
    *(name for name in METHODS if name.startswith("scipy_")),
}


def test_every_method_is_in_one_list() -> None:
    assert set(AS_GRADIENT_DESCENT) | NEVER_GRADIENT_DESCENT == set(METHODS)
    assert not set(AS_GRADIENT_DESCENT) & NEVER_GRADIENT_DESCENT


@pytest.mark.parametrize("name", AS_GRADIENT_DESCENT)
def test_ten_steps_on_parabolas(name: str) -> None:
    method = default_method(name, step_size=0.2, **AS_GRADIENT_DESCENT[name])
    assert run(method, parabolas(), 10)[-1].x == pytest.approx([2.9970703125], rel=1e-14)


# Z04: 100 steps, or 50, a new process, and 50 more.

CONTINUE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_every_method import METHODS, run_from
for name in METHODS:
    run_from(name, Path(sys.argv[2]))
"""


@cache
def solved() -> Constants:
    """Of `small_logistic`, with the minimum, which takes longer to find than a run."""
    return small_logistic().constants.solved()


def run_to(name: str, iterations: int, folder: Path, start: Checkpoint | None = None) -> History:
    """A run with a checkpoint at its end, whose name is the number of iterations."""
    problem, history = small_logistic(), History()
    problem.constants = solved()
    method = METHODS[name].theory(problem) if start is None else start.method
    path = folder / f"{name}-{iterations}"
    writer = Writer(path, Interval(None, iterations), {}, method, problem, history)
    position = None if start is None else start.position
    budget = Budget(iterations=iterations)
    minimize(problem, method, budget, seed=7, history=history, checkpoints=writer, start=position)
    return history


def half(name: str) -> int:
    """SciPy's methods have converged after few iterations, and end."""
    return 3 if name.startswith("scipy_") else 50


def run_from(name: str, folder: Path) -> None:
    """The second half of a run."""
    start = read(folder / f"{name}-{half(name)}", {}, type(METHODS[name]))
    run_to(name, 2 * half(name), folder, start)


@pytest.fixture(scope="module")
def continued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints of every method: half of the iterations here, and half in another process."""
    folder = tmp_path_factory.mktemp("continued")
    for name in METHODS:
        run_to(name, half(name), folder)
    here = Path(__file__).parent
    subprocess.run([sys.executable, "-c", CONTINUE, str(here), str(folder)], check=True)
    return folder


@EVERY
def test_stop_and_resume(name: str, continued: Path, tmp_path: Path) -> None:
    """The same bits of x, state, counters and of the last record."""
    iterations = 2 * half(name)
    run_to(name, iterations, tmp_path)
    members: list[dict[str, Any]] = [{}, {}]
    contents = []
    for folder, arrays in zip((tmp_path, continued), members, strict=True):
        position = read(folder / f"{name}-{iterations}", {}, type(METHODS[name])).position
        assert position.finite is not None
        x, record = position.finite
        position = position._replace(seconds=0, finite=(x, record._replace(seconds=0)))
        contents.append(pack(position, arrays))
    assert contents[0] == contents[1]
    assert contents[0]["fields"]["iteration"] == iterations
    for one, other in zip(*(arrays.values() for arrays in members), strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


# Z09: what a callback keeps.


@EVERY
def test_every_x_is_an_array_of_its_own(name: str) -> None:
    problem, kept = small_logistic(), []

    def keep(x: Any) -> None:
        kept.append(x)
        if len(kept) == 5:
            raise StopIteration

    # RCD may draw the same coordinate twice, which is minimal along it only for the whole step.
    method = replace(METHODS[name], step_size_factor=0.5) if name == "rcd" else METHODS[name]
    outcome = minimize(problem, method.theory(problem), Budget(iterations=50), callback=keep)
    assert outcome.status == "stopped"
    assert outcome.record.iteration == len(kept) == 5
    assert len({id(x) for x in kept}) == len({x.tobytes() for x in kept}) == 5
    assert not any(np.shares_memory(a, b) for a in kept for b in kept if a is not b)


# The contract of `base`.


@EVERY
def test_theory_settles_everything_once(name: str) -> None:
    problem = small_logistic()
    method = METHODS[name].theory(problem)
    assert method.theory(problem) == method
    if isinstance(method, FixedStep):
        doubled = replace(METHODS[name], step_size_factor=2.0).theory(problem)
        assert isinstance(doubled, FixedStep)
        assert doubled.gamma == 2 * method.gamma
        assert doubled.theory(problem) == doubled
        given = replace(METHODS[name], step_size=0.25, step_size_factor=2.0).theory(problem)
        assert given.gamma == 0.5


@EVERY
def test_a_run_is_a_function_of_the_seed(name: str) -> None:
    problem = small_logistic()
    first = run(METHODS[name], problem, 20, seed=1)[-1]
    again = run(METHODS[name], problem, 20, seed=1)[-1]
    assert first.x.tobytes() == again.x.tobytes()


@EVERY
def test_states_are_never_changed(name: str) -> None:
    states = []
    problem = small_logistic()
    method = METHODS[name].theory(problem)
    state = method.init(problem, problem.x0, Key(0, 0))
    for number in range(1, 8):
        states.append((state, copies(state)))
        state = method.step(problem, state, Key(0, number))
    for old, before in states:
        for part, copy in zip(copies(old), before, strict=True):
            np.testing.assert_array_equal(part, copy)


@EVERY
def test_float32_stays_float32(name: str) -> None:
    for state in run(METHODS[name], small_logistic("float32"), 4):
        for part in copies(state):
            assert part.ndim == 0 or part.dtype == np.float32


@EVERY
@pytest.mark.parametrize("psi", [L1(0.05), Box(0.1), Ball(0.1), Simplex()], ids=repr)
def test_a_problem_with_psi(name: str, psi: Psi) -> None:
    """Methods without a prox refuse it; of the others the iterates satisfy constraints."""
    problem = small_logistic().with_psi(psi)
    method = METHODS[name]
    if method.proximal:
        states = run(method, problem, 80)
        assert all(np.isfinite(problem.metrics(state.x)).all() for state in states)
        assert problem.metrics(states[-1].x)[0] < problem.metrics(problem.x0)[0]
        return
    with pytest.raises(ValueError, match=r"leave out prox=|has no theorem") as caught:
        method.theory(problem)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cls", CLASSES)
def test_docstrings_have_the_same_notes(cls: type[Optimizer[Any]]) -> None:
    """They become the table of all methods."""
    text = cls.__doc__ or ""
    notes = text.partition("Notes\n    -----\n")[2]
    keys = re.findall(r"^    ([A-Z][a-z ]+):", notes, flags=re.MULTILINE)
    assert keys == ["Problems", "Step size", "Oracle", "Bits", "Memory", "Source"]


def test_the_page_of_all_methods_is_fresh() -> None:
    page = Path(__file__).parents[1] / "docs" / "methods.md"
    assert page.read_text() == catalogue.page(), (
        "python -m buropt.optim.catalogue > docs/methods.md"
    )
    listed = [name for names in catalogue.FAMILIES.values() for name in names]
    assert sorted(listed) == sorted(cls.__name__ for cls in CLASSES)


def test_every_method_has_a_file_like_its_configuration() -> None:
    folder = Path(sys.modules["buropt.optim"].__file__ or "").parent
    files = {path.stem for path in folder.glob("*.py")}
    for name, method in METHODS.items():
        assert type(method).__module__.rpartition(".")[2] in files
        cls = type(method).__name__.lower()
        assert cls == "scipy" if name.startswith("scipy_") else name.replace("_", "")
