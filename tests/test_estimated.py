"""Problems of any compiled loss: constants estimated at chosen points."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest
from methods import run
from scipy import sparse

import buropt as bo
from buropt.build import call
from buropt.compressors import RandK
from buropt.optim import GD, FedNL, Marina
from buropt.problems import compiled, estimated, from_oracle, least_squares, logistic
from buropt.problems.logistic import loss as logistic_loss

FORMED = pytest.mark.parametrize("formed", [True, False])


def squares(x: Any, a: Any, b: Any) -> Any:
    return 0.5 * (a @ x - b) ** 2


def hidden_squares(x: Any, a: Any, b: Any) -> Any:
    """The same, written so that nobody sees a linear model."""
    return 0.5 * (np.sum(a * x) - b) ** 2


def samples(n: int = 60, d: int = 12) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d)) * rng.uniform(0.2, 2, d)
    return A, np.where(A @ rng.standard_normal(d) + rng.standard_normal(n) > 0, 1.0, -1.0)


@FORMED
@pytest.mark.parametrize("loss", [squares, hidden_squares])
def test_a_quadratic_has_its_exact_constants(
    loss: Any, formed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Hessian is the same everywhere, and 32 steps of Lanczos's method are the whole space."""
    if not formed:
        monkeypatch.setattr(estimated, "FORMED", 0)
    A, y = samples(30)
    found = compiled(A, y, loss=loss, l2=0.1, split=4).constants
    exact = least_squares(A, y, l2=0.1, split=4).constants
    for name in ("L", "L_max", "L_tilde", "L_sample_max", "L_plus", "L_pm", "mu", "mu_worker"):
        assert getattr(found, name) == pytest.approx(getattr(exact, name), rel=1e-6), name
    assert found.convex
    assert found.f_star == pytest.approx(exact.f_star, rel=1e-12)


@FORMED
def test_constants_that_are_reached_at_a_point(
    formed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The curvature of the logistic loss is largest at 0, the start, for all samples."""
    if not formed:
        monkeypatch.setattr(estimated, "FORMED", 0)
    A, y = samples(200, 60)
    for rows in (A, sparse.csr_array(np.where(np.abs(A) > 1, A, 0))):
        found = compiled(rows, y, loss=logistic_loss, l2=0.01, split=3).constants
        exact = logistic(rows, y, l2=0.01, split=3).constants
        assert pytest.approx(exact.L, rel=1e-6) == found.L
        np.testing.assert_allclose(found.L_i, exact.L_i, rtol=1e-6)
        assert found.L_sample_max == pytest.approx(exact.L_sample_max, rel=1e-6)
        assert found.L_plus is not None
        assert found.L_pm is not None
        assert found.L <= found.L_plus <= found.L_tilde <= found.L_max
        assert math.sqrt(found.L_plus**2 - found.L**2) <= found.L_pm * (1 + 1e-9)
        assert found.mu * (1 + 1e-9) >= 0.01


def test_they_are_called_estimates_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "buropt.problems"):
        problem = compiled(*samples(), loss=squares, l2=0.1, points=4)
    assert "the constants are estimates, from Hessians at 4 points: L = " in caplog.text
    source = problem.constants.source
    assert all(text.startswith("estimate: ") for text in source.values())
    assert problem.name == "compiled"


def test_a_nonconvex_loss_of_any_shape() -> None:
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    x0 = {"w": rng.standard_normal((4, 3)), "v": rng.standard_normal(4)}

    def loss(p: Any, a: Any, b: Any) -> Any:
        return (p["v"] @ np.tanh(p["w"] @ a) - b) ** 2

    oracle = bo.compile(loss, x0, (A, y), workers=4)
    problem = from_oracle(oracle, name="net")
    assert not problem.constants.convex
    assert problem.constants.mu == 0
    assert problem.constants.f_star is None
    assert problem.constants.source["mu"] == "not strongly convex, or not known"
    hessian = oracle.hessian(oracle.x0)
    assert np.linalg.norm(hessian, 2) * (1 - 1e-12) <= problem.constants.L
    for method in (GD(), Marina(compressor=RandK(4))):
        states = run(method, problem, 50)
        assert problem.value(states[-1].x) < problem.value(problem.x0)
    with pytest.raises(ValueError, match="not known to be convex"):
        FedNL().theory(problem)


def test_what_is_known_of_convexity_is_taken() -> None:
    A, y = samples()
    assert compiled(A, y, loss=squares, convex=False).constants.mu == 0
    assert compiled(A, y, loss=squares, l2=0.1, convex=True).constants.convex


def test_a_configuration_names_the_loss() -> None:
    A, y = samples()
    node = {
        "_target_": "buropt.problems.compiled",
        "loss": "buropt.problems.logistic.loss",
        "l2": "1e-1",
    }
    problem = call(node, "problem", A=A, y=y, split=3)
    assert problem.n_workers == 3
    with pytest.raises(ValueError, match=r"problem\.loss must name a function such as my_module"):
        call({**node, "loss": "buropt.problems.logistic.los"}, "problem", A=A, y=y)
    with pytest.raises(ValueError, match=r"problem\.loss names buropt\.problems\.logistic\.THIRD"):
        call({**node, "loss": "buropt.problems.logistic.THIRD"}, "problem", A=A, y=y)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="a problem needs data"):
        from_oracle(bo.compile(lambda x: x @ x, np.zeros(2)))
    with pytest.raises(ValueError, match="a loss that is linear piece by piece has no smoothness"):
        compiled(*samples(), loss=lambda x, a, b: np.maximum(0, 1 - b * (a @ x)))
    with pytest.raises(ValueError, match="is not finite at a point of length 0"):
        compiled(*samples(), loss=lambda x, a, b: (a @ x - b) ** 2 * 1e308 * 1e308)
    with pytest.raises(ValueError, match="points must be at least 1, got 0"):
        compiled(*samples(), loss=squares, points=0)
