"""What objects look like, in a console and in a notebook; and that they can be copied."""

from __future__ import annotations

import copy
import pickle
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
from rich.console import Console
from scipy_cases import START, logistic, rosenbrock

import buropt.compressors
import buropt.optim
import buropt.scipy
from buropt.budget import Budget
from buropt.history import History
from buropt.loop import minimize
from buropt.optim import EF21, GD, Marina, SciPy
from buropt.picture import Picture
from buropt.problems import logistic as logistic_problem
from buropt.progress import Progress
from buropt.prox import L1

PNG = b"\x89PNG\r\n\x1a\n"


class Text(HTMLParser):
    """The text of a page; checks that tags are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def text_of(thing):
    parser = Text()
    parser.feed(thing._repr_html_())
    assert parser.open == []
    return parser.words


def problem():
    rng = np.random.default_rng(0)
    return logistic_problem(rng.standard_normal((40, 3)), rng.choice([-1.0, 1.0], 40), l2=0.1)


def history_of(iterations):
    history, target = History(), problem()
    minimize(target, GD().theory(target), Budget(iterations=iterations), history=history)
    return history


def test_oracles():
    oracle = logistic()
    assert repr(oracle).startswith("Oracle(dim=4, n_samples=200")
    words = text_of(oracle)
    assert words[0] == "Oracle"
    assert {"4, of float64", "200", "(4,)"} <= set(words)


def test_problems():
    target = problem()
    assert repr(target) == "Problem('logistic', dim=3, n_samples=40, n_workers=1, dtype=float64)"
    target.grad(target.x0)
    words = text_of(target)
    assert words[0] == "Problem logistic"
    assert words[words.index("passes over the data so far") + 1] == "1"
    assert "psi=L1" in repr(target.with_psi(L1(0.5)))


@pytest.mark.parametrize("method", [GD(), Marina(p=0.5), EF21(), SciPy("trust-ncg")])
def test_methods(method):
    names = vars(buropt.optim) | vars(buropt.compressors)
    assert eval(repr(method), names) == method
    words = text_of(method)
    assert words[0] == method.label
    assert words[-1].endswith(".")


def test_histories():
    history = history_of(30)
    assert repr(history).startswith("History(31 records, iterations 0 to 30, f 0.69")
    assert repr(History()) == "History(no records)"
    words = text_of(history)
    assert words[-1] == "10 of 31 records"
    assert {"iteration", "grad_norm_sq", "seconds", "30"} <= set(words)
    assert text_of(History())[0] == "History"
    assert len(text_of(history_of(3))) == 1 + 10 * (1 + 4)


def test_the_plot_of_a_history(tmp_path):
    history = history_of(5)
    picture = history.plot(tmp_path / "curve.png", title="GD")
    assert isinstance(picture, Picture)
    assert picture._repr_png_()[:8] == PNG
    assert (tmp_path / "curve.png").read_bytes()[:8] == PNG
    assert [axes.get_xlabel() for axes in picture.axes] == ["iteration", "uplink bits per worker"]
    with pytest.raises(ValueError, match="no records"):
        History().plot()


def test_progress_in_a_notebook(monkeypatch):
    shown = []

    def display(content, raw, display_id):
        assert raw
        assert display_id
        shown.append(content["text/plain"])
        return SimpleNamespace(update=lambda new, raw: shown.append(new["text/plain"]))

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    budget, target = Budget(iterations=20), problem()
    with Progress(budget, Console(force_jupyter=True, width=90)) as progress:
        minimize(target, GD().theory(target), budget, on_record=progress.update)
    assert shown[0] == ""
    assert "iter 20" in shown[-1]
    assert len(shown) <= 5


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_everything_can_be_copied(duplicate, tmp_path):
    target = problem()
    settled = SciPy("BFGS").theory(target)
    for thing in (logistic(), target, GD(), settled, Budget(iterations=1)):
        assert repr(duplicate(thing)) == repr(thing)
    with History.create(tmp_path / "history.jsonl") as history:
        minimize(target, settled, Budget(iterations=2), history=history)
        copied = duplicate(history)
    assert copied.records == history.records
    copied.append(history.records[-1])  # in memory alone
    pieces = duplicate(buropt.scipy.Pieces(rosenbrock, START))
    assert pieces.fun(START) == pytest.approx(24.2)
    constraint = duplicate(buropt.scipy.NonlinearConstraint(rosenbrock, 0, 1, START))
    assert constraint.jac(START).shape == (1, 2)
    result = buropt.scipy.minimize(rosenbrock, START, bounds=scipy.optimize.Bounds(-2, 2))
    assert np.array_equal(duplicate(result).x, result.x)
