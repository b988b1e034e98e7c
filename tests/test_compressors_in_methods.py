"""Which methods take which compressors, and MARINA with PermK, whose workers draw together."""

from __future__ import annotations

import importlib.resources
import math
from dataclasses import fields, replace
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from methods import METHODS, choices, random_quadratic, run, shared_hessian, squared

from buropt.build import call
from buropt.compressors import Composition, Compressor, Message, PermK, RandK, TernGrad
from buropt.optim import EF21BC, GD, Diana, Marina
from buropt.problems import Problem, quadratic

N = 4


def configured(choice: str) -> Compressor:
    """The compressor of compressor=<choice>, with parameters for few entries."""
    folder = importlib.resources.files("buropt.conf").joinpath("compressor")
    node = yaml.safe_load(folder.joinpath(f"{choice}.yaml").read_text())
    small = {"k": 2, "n_workers": N, "block_size": 3}
    node |= {key: value for key, value in small.items() if key in node}
    if choice == "composition":
        node["first"]["k"] = 2
    compressor: Compressor = call(node, "compressor")
    return compressor


COMPRESSORS = {choice: configured(choice) for choice in choices("compressor")}
COMPRESSED = [
    name
    for name, method in METHODS.items()
    if "compressor" in {field.name for field in fields(method)}
]
NEED_UNBIASED = {
    *("adiana", "cofig", "dasha", "dasha_mvr", "dasha_page", "dcgd", "diana", "frecon", "marina"),
    *("pp_marina", "vr_diana", "vr_marina"),
}
TAKE_JOINT_DRAWS = {"marina", "vr_marina"}


@pytest.fixture(scope="module")
def problem() -> Problem:
    return random_quadratic(N, 6, 0)[0]


def refusal(method: Any, compressor: Compressor, problem: Problem) -> str:
    """What is said against the compressor, or nothing."""
    try:
        replace(method, compressor=compressor).theory(problem)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", COMPRESSED)
def test_methods_take_the_compressors_of_their_class(name: str, problem: Problem) -> None:
    for choice, compressor in COMPRESSORS.items():
        message = refusal(METHODS[name], compressor, problem)
        if name in NEED_UNBIASED:
            fits = compressor.unbiased and (compressor.independent or name in TAKE_JOINT_DRAWS)
        else:
            fits = compressor.unbiased or compressor.alpha(6) is not None
        assert fits == (message == ""), choice
        if not fits:
            assert "\n" not in message
            assert "take " in message
            assert "compressor=" in message
            continue
        method = replace(METHODS[name], compressor=compressor)
        assert np.isfinite(run(method, problem, 2)[-1].x).all(), choice


def test_what_needs_unbiased_compressors_is_known() -> None:
    assert set(COMPRESSED) > NEED_UNBIASED


# MARINA with PermK.


def test_marina_with_permk_on_equal_workers_is_gradient_descent() -> None:
    one = shared_hessian(1, 6)
    A = np.repeat(one.hessian(np.zeros(6))[None], 3, axis=0)
    b = np.repeat(-one.grad(np.zeros(6))[None], 3, axis=0)
    same = quadratic((A + A.transpose(0, 2, 1)) / 2, b)
    method = Marina(compressor=PermK(3)).theory(same)
    assert math.isclose(method.gamma, 1 / same.constants.L, rel_tol=1e-6)
    assert method.p == 1 / 3
    states = run(method, same, 30)
    expected = run(GD(step_size=method.gamma), same, 30)
    for state, other in zip(states, expected, strict=True):
        assert np.allclose(state.x, other.x, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("n", "d"), [(3, 7), (4, 8), (6, 4)])
def test_the_step_size_of_marina_with_permk(n: int, d: int) -> None:
    problem, _ = random_quadratic(n, d, 1)
    c, p = problem.constants, 1 / min(n, d)
    method = Marina(compressor=PermK(n)).theory(problem)
    A, B = PermK(n).collective(d, n)
    root = math.sqrt((1 - p) / p * ((A - B) * c.L_plus**2 + B * c.L_pm**2))  # type: ignore[operator]
    assert method.p == p
    assert math.isclose(method.gamma, 1 / (c.L + root))
    if d >= n:
        assert math.isclose(method.gamma, 1 / (c.L + c.L_pm * math.sqrt(n - 1)))  # type: ignore[operator]
    independent = Marina(compressor=RandK(1), p=0.5).theory(problem)
    omega = d - 1
    assert math.isclose(independent.gamma, 1 / (c.L + c.L_plus * math.sqrt(omega / n)))  # type: ignore[operator]


class Shares(PermK):
    """PermK with given coordinates of the workers, one each."""

    def compress(self, x: Any, key: Any, out: Any = None) -> Message:
        values = np.zeros_like(x)
        for worker, coordinate in enumerate(key.shares):
            values[worker, coordinate] = len(x) * x[worker, coordinate]
        return Message(values, np.zeros(len(x), np.int64))


def draw(face: bool, shares: tuple[int, ...] = ()) -> Any:
    return SimpleNamespace(shares=shares, fold=lambda purpose: SimpleNamespace(coin=lambda p: face))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("polyak_lojasiewicz", [False, True])
def test_one_step_of_marina_with_permk(seed: int, polyak_lojasiewicz: bool) -> None:
    """f + c |g - grad f|^2 falls as the theorems say, in expectation over coin and permutation."""
    problem, rng = random_quadratic(3, 3, seed)
    method = Marina(compressor=Shares(3), polyak_lojasiewicz=polyak_lojasiewicz).theory(problem)
    weight = method.gamma / method.p * (1 if polyak_lojasiewicz else 0.5)  # type: ignore[operator]
    f_star, mu = problem.constants.f_star, problem.constants.mu
    assert f_star is not None
    for _ in range(4):
        x = 2 * rng.standard_normal(3)
        grads = problem.worker_grads(x)
        gradient = grads.mean(axis=0)
        state: Any = SimpleNamespace(
            x=x, g=gradient + rng.standard_normal(3) * rng.uniform(0, 2), grads=grads
        )
        before = problem.value(x) - f_star + weight * squared(state.g - gradient)
        dense = method.step(problem, state, draw(True))
        errors = [
            squared(method.step(problem, state, draw(False, shares)).g - dense.g)
            for shares in permutations(range(3))
        ]
        chance = 1 - method.p  # type: ignore[operator]
        after = problem.value(dense.x) - f_star + weight * chance * float(np.mean(errors))
        if polyak_lojasiewicz:
            assert after <= (1 - method.gamma * mu) * before * (1 + 1e-9)
        else:
            assert after <= before - method.gamma / 2 * squared(gradient) + 1e-9 * abs(before)


def test_marina_with_permk_converges_where_each_message_is_short() -> None:
    problem, _ = random_quadratic(3, 7, 2)
    states = run(Marina(compressor=PermK(3)), problem, 4000)
    assert problem.metrics(states[-1].x)[1] < 1e-16
    sent = problem.counters.bits_up / 4000 / 64
    assert sent < 7 * (1 / 3 + 2 / 3 / 3) * 1.1


def test_permk_composed_is_for_marina_too() -> None:
    problem, _ = random_quadratic(3, 7, 3)
    compressor = Composition(PermK(3), TernGrad())
    A, B = compressor.collective(7, 3)
    assert (1 + 3 * TernGrad().omega(3) / 3, 1) == (A, B)
    assert np.isfinite(run(Marina(compressor=compressor), problem, 5)[-1].x).all()
    with pytest.raises(ValueError, match=r"Diana needs a compressor that every worker draws"):
        Diana(compressor=compressor)


def test_a_server_does_not_share_out_coordinates() -> None:
    with pytest.raises(ValueError, match=r"EF21BC needs a compressor that every worker draws"):
        EF21BC(server_compressor=PermK(4))


def test_permk_for_another_number_of_workers(problem: Problem) -> None:
    with pytest.raises(ValueError, match=r"there are 4 workers; write compressor\.n_workers=4"):
        Marina(compressor=PermK(3)).theory(problem)
