"""SciPy's methods under the loop of all others, and in sweeps."""

from __future__ import annotations

import gc
import json
import pickle
import threading
from pathlib import Path

import hydra
import numpy as np
import pytest
import scipy.optimize
from omegaconf import OmegaConf
from scipy_cases import DERIVATIVES

import buropt.scipy
from buropt.budget import Budget
from buropt.history import History
from buropt.loop import minimize
from buropt.optim import GD, SciPy
from buropt.problems import logistic
from buropt.prox import L1
from buropt.random import Key
from buropt.run import run

CONFIGS = Path(__file__).parents[1] / "buropt" / "conf" / "optimizer"


def problem(l2=0.01, **options):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((60, 5))
    y = np.where(A @ rng.standard_normal(5) + 0.3 * rng.standard_normal(60) > 0, 1.0, -1.0)
    return logistic(A, y, l2=l2, split=3, **options)


def run_of(method, target=None, **limits):
    target = problem() if target is None else target
    history = History()
    outcome = minimize(
        target, method.theory(target), Budget(**limits), log_every=1, history=history
    )
    return outcome, history, target


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")
@pytest.mark.parametrize("method", DERIVATIVES)
def test_every_method_reaches_the_minimum_with_the_same_columns(method):
    outcome, history, target = run_of(SciPy(method), iterations=200, tolerance=1e-12)
    assert outcome.status == "converged"
    assert outcome.record.f_gap < 1e-11
    _, of_gd, _ = run_of(GD(), iterations=3)
    assert history.records[0][:6] == of_gd.records[0][:6]
    for column in ("oracle_calls", "epochs", "bits_up", "bits_down", "seconds"):
        assert (np.diff(history[column]) >= 0).all()
    assert (np.diff(history["iteration"]) == 1).all()
    assert history["oracle_calls"][-1] == target.counters.oracle_calls


@pytest.mark.parametrize(
    "method", ["CG", "BFGS", "L-BFGS-B", "Newton-CG", "trust-ncg", "trust-exact"]
)
def test_iterates_are_scipys(method):
    target = problem()
    pieces = buropt.scipy.Pieces(target.oracle)
    iterates = []
    second = {"trust-exact": "hess", "Newton-CG": "hessp", "trust-ncg": "hessp"}.get(method)
    scipy.optimize.minimize(
        pieces.fun,
        target.x0,
        method=method,
        jac=pieces.jac,
        callback=lambda xk: iterates.append(xk),
        options={"maxiter": 4},
        **({second: getattr(pieces, second)} if second else {}),
    )
    settled = SciPy(method).theory(target)
    state = settled.init(target, target.x0, Key(0, 0))
    for k, x in enumerate(iterates):
        state = settled.step(target, state, Key(0, k + 1))
        assert np.allclose(state.x, x, rtol=1e-8, atol=1e-12)


def test_questions_are_counted_once_for_each_point():
    _, history, target = run_of(SciPy("L-BFGS-B"), iterations=8)
    pieces = buropt.scipy.Pieces(target.oracle)
    pieces_run = scipy.optimize.minimize(
        pieces.fun,
        target.x0,
        jac=pieces.jac,
        method="L-BFGS-B",
        options={"maxiter": 8, "ftol": 0, "gtol": 0},
    )
    assert history["oracle_calls"][-1] == pieces_run.nfev
    assert history["epochs"][-1] == pieces_run.nfev
    _, products, _ = run_of(SciPy("trust-ncg"), iterations=3)
    assert products["oracle_calls"][-1] > 4
    assert products["oracle_calls"][-1] == products["epochs"][-1]


@pytest.mark.parametrize("method", ["L-BFGS-B", "trust-ncg", "trust-constr"])
def test_a_copy_of_a_state_goes_on_with_the_same_bits(method):
    target = problem()
    settled = SciPy(method).theory(target)
    state = settled.init(target, target.x0, Key(0, 0))
    for k in range(4):
        state = settled.step(target, state, Key(0, k + 1))
    copy, again = pickle.loads(pickle.dumps((state, target)))
    assert copy.run is None
    before = again.counters.oracle_calls
    there = settled.step(target, state, Key(0, 5))
    here = settled.step(again, copy, Key(0, 5))
    assert np.array_equal(here.x, there.x)
    assert again.counters == target.counters
    assert again.counters.oracle_calls > before
    once_more = settled.step(target, state, Key(0, 5))  # the run is further on than this state
    assert np.array_equal(once_more.x, there.x)


def test_a_method_that_gives_up_ends_the_run():
    outcome, _, _ = run_of(SciPy("trust-ncg"), epochs=1e6)
    assert outcome.status == "ended"
    assert "bad approximation" in outcome.message.lower()
    assert outcome.record.f_gap < 1e-12


def test_threads_end_with_their_runs():
    before = threading.active_count()
    for _ in range(3):
        run_of(SciPy("BFGS"), iterations=2)
    gc.collect()
    for thread in threading.enumerate():
        if thread.daemon and thread is not threading.current_thread():
            thread.join(5)
    assert threading.active_count() == before


def test_options_and_single_precision():
    target = problem(dtype="float32")
    outcome, history, _ = run_of(SciPy("L-BFGS-B", {"maxcor": 3}), target, iterations=15)
    assert outcome.x.dtype == np.float32
    assert history["grad_norm_sq"][-1] < 1e-6 * history["grad_norm_sq"][0]
    outcome, _, _ = run_of(SciPy("BFGS", {"gtol": 1e-3}), iterations=1000)
    assert outcome.status == "ended"
    assert "success" in outcome.message


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"SciPy.method must be one of CG, BFGS.*got 'lbfgs'"):
        SciPy("lbfgs")
    composite = problem().with_psi(L1(0.1))
    with pytest.raises(ValueError, match="SciPy is for smooth problems"):
        SciPy().theory(composite)
    with pytest.warns(scipy.optimize.OptimizeWarning, match="nonsense"):
        run_of(SciPy("CG", {"nonsense": 1}), iterations=2)


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")
@pytest.mark.parametrize("name", sorted(path.stem for path in CONFIGS.glob("scipy_*.yaml")))
def test_sweeps(name, tmp_path):
    with hydra.initialize_config_module("buropt.conf", version_base="1.3"):
        config = hydra.compose(
            "config",
            overrides=[f"optimizer={name}", "iterations=6", "verbose=false", "problem.l2=0.1"],
        )
    report = run(config, tmp_path / name)
    assert report.exit_code == 0
    history = History.load(tmp_path / name / "history.jsonl")
    assert history["grad_norm_sq"][-1] < 0.1 * history["grad_norm_sq"][0]
    result = json.loads((tmp_path / name / "result.json").read_text())
    assert result["optimizer"]["method"] == OmegaConf.to_container(config)["optimizer"]["method"]


def test_there_is_a_configuration_for_every_method():
    configured = {OmegaConf.load(path).method for path in CONFIGS.glob("scipy_*.yaml")}
    assert configured == set(DERIVATIVES)
