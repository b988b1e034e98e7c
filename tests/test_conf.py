"""Every configuration composes, and what it names can be built; mistakes are told clearly."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import hydra
import pytest
import yaml
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException
from methods import choices
from omegaconf import OmegaConf

from buropt import optim
from buropt.build import build, call, coerce, settings_of
from buropt.compressors import Identity, RandK, TopK
from buropt.mistakes import explain
from buropt.optim import EF21, GD, SVRG, FixedStep, Marina

DOWNLOADED = ("libsvm", "a1a", "a9a", "mushrooms", "news20", "phishing", "w8a")
GROUPS = ("data", "problem", "prox", "compressor", "schedule", "optimizer", "logger")
OVERLAYS = ("budget", "sweep", "experiment")


def compose(*overrides: str) -> dict[str, Any]:
    with hydra.initialize_config_module("buropt.conf", version_base="1.3"):
        config = hydra.compose("config", overrides=list(overrides))
    container = OmegaConf.to_container(config, resolve=True)
    assert isinstance(container, dict)
    return container  # type: ignore[return-value]


@pytest.fixture
def libsvm_file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny"
    path.write_text("".join(f"{-1 if j % 3 else 1} 1:{j} {2 + j % 7}:1\n" for j in range(1, 30)))
    return path


def class_of(optimizer: str) -> str:
    """One class in lower case for a choice; one for all of SciPy's methods."""
    return "scipy" if optimizer.startswith("scipy_") else optimizer.replace("_", "")


def test_the_choices_are_known() -> None:
    assert {"gd", "sgd", "saga", "diana", "marina", "ef21"} < set(choices("optimizer"))
    names = {class_of(name) for name in choices("optimizer")}
    listed = set(optim.__all__) - {"Optimizer", "FixedStep"}
    assert names == {name.lower() for name in listed}
    assert {"identity", "permk", "randk", "topk"} < set(choices("compressor"))
    assert "logistic" in choices("problem")
    assert "breast_cancer" in choices("data")


@pytest.mark.parametrize("data", choices("data"))
def test_every_data_set(data: str, libsvm_file: Path) -> None:
    where = [f"data.path={libsvm_file}"] if data in DOWNLOADED else []
    config = compose(f"data={data}", "compressor.k=2", *where)
    if data == "none":
        with pytest.raises(ValueError, match="this problem needs data: choose for example data="):
            build(config)
    else:
        problem = build(config).problem
        assert problem.n_samples > 20
        assert problem.n_workers == 5


@pytest.mark.parametrize("problem", choices("problem"))
def test_every_problem(problem: str) -> None:
    experiment = build(compose(f"problem={problem}"))
    assert experiment.problem.name == problem
    assert experiment.problem.n_workers == 5
    method, start = experiment.method, experiment.problem.x0
    assert type(method.init(experiment.problem, start, _key())).__name__ == "State"


def _key() -> Any:
    from buropt.random import Key

    return Key(0)


@pytest.mark.parametrize("optimizer", choices("optimizer"))
@pytest.mark.parametrize("compressor", ["identity", "randk"])
def test_every_method(optimizer: str, compressor: str) -> None:
    experiment = build(compose(f"optimizer={optimizer}", f"compressor={compressor}"))
    assert type(experiment.method).__name__.lower() == class_of(optimizer)
    assert not isinstance(experiment.method, FixedStep) or experiment.method.gamma > 0


def test_the_default_run_is_long_enough() -> None:
    """`test_run.test_the_default_run` shows that 2000 iterations are."""
    assert compose()["iterations"] >= 2000


def test_defaults_and_the_compressor_that_fits_the_method() -> None:
    marina, ef21 = build(compose()).method, build(compose("optimizer=ef21")).method
    assert isinstance(marina, Marina)
    assert isinstance(marina.compressor, RandK)
    assert isinstance(ef21, EF21)
    assert isinstance(ef21.compressor, TopK)
    chosen = build(compose("optimizer=ef21", "compressor=identity")).method
    assert isinstance(chosen, EF21)
    assert chosen.compressor == Identity()


def test_a_problem_that_makes_its_own_data() -> None:
    config = compose("problem=quadratic", "n_workers=3", "problem.dim=20", "seed=4")
    assert "data" not in config or not config["data"]
    experiment = build(config)
    assert experiment.problem.n_workers == 3
    assert experiment.title == "Marina on quadratic, 3 workers"


@pytest.mark.parametrize("split", ["contiguous", "shuffled", "sorted", "dirichlet"])
def test_every_split(split: str) -> None:
    problem = build(compose(f"split={split}", "n_workers=4", "dirichlet_alpha=10")).problem
    assert problem.n_workers == 4


@pytest.mark.parametrize("text", ["yes", "no", "on", "off", "true", "False", "'No'"])
def test_truth_values_however_they_are_written(text: str) -> None:
    ef21 = ["problem=quadratic", "optimizer=ef21"]
    words = [f"{key}={text}" for key in ("optimizer.dense_start", "overwrite", "verbose")]
    experiment = build(compose(*ef21, *words))
    expected = text in ("yes", "on", "true")
    assert isinstance(experiment.method, EF21)
    assert experiment.method.dense_start is expected
    assert experiment.settings.overwrite is experiment.settings.verbose is expected


@pytest.mark.parametrize("large", ["1e155", "1e308"])
def test_data_whose_squares_are_not_finite(large: str, tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_text("".join(f"{-1 if j % 3 else 1} 1:{large} {2 + j % 7}:1\n" for j in range(30)))
    with pytest.raises(ValueError, match=r"constants are not finite: .* scale the features"):
        build(compose("data=libsvm", f"data.path={path}", "compressor.k=2"))


def test_an_import_that_fails_is_not_a_mistake_in_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "half_imported.py").write_text("raise ImportError('interrupted')\n")
    sys.path.insert(0, str(tmp_path))
    try:
        with pytest.raises(ImportError, match="interrupted"):
            call({"_target_": "half_imported.f"}, "problem")
    finally:
        sys.path.remove(str(tmp_path))


@pytest.mark.parametrize("text", ["1e-3", "1E-3", "0.001", ".001", "'1e-3'", "1.0e-3"])
def test_a_number_is_a_number_however_it_is_written(text: str) -> None:
    method = build(compose("optimizer=gd", f"optimizer.step_size={text}")).method
    assert isinstance(method, GD)
    assert method.step_size == 1e-3
    assert type(method.step_size) is float


def test_numbers_from_plain_yaml_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert yaml.safe_load("1e-3") == "1e-3"  # what plain YAML makes of it
    node = yaml.safe_load("{_target_: buropt.optim.SVRG, step_size: 1e-3, batch_size: 1e1}")
    assert call(node, "optimizer") == SVRG(step_size=1e-3, batch_size=10)
    monkeypatch.setenv("STEP", "2e-3")
    method = build(compose("optimizer=gd", "optimizer.step_size=${oc.env:STEP}")).method
    assert method.gamma == 2e-3


def test_counts_may_be_written_as_floats() -> None:
    budget = build(compose("iterations=1e3", "epochs=5", "bits='1e9'")).budget
    assert budget.iterations == 1000
    assert type(budget.iterations) is int
    assert budget.bits == 1e9


def test_text_stays_text_where_text_is_meant() -> None:
    assert coerce("1e5", "PathLike | None", "data.path") == "1e5"
    assert coerce("1e5", "str | None", "name") == "1e5"
    assert coerce(None, "float | None", "x") is None
    assert coerce(True, "bool", "x") is True


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["+optimizer.step_sze=1"],
            r"optimizer\.step_sze is not a setting; did you mean optimizer",
        ),
        (["+foo=1"], r"foo is not a setting\. The settings here are .*iterations"),
        (["optimizer.step_size=big"], r"optimizer\.step_size must be a number, got 'big'"),
        (["compressor.k=2.5"], r"compressor\.k must be a whole number, got 2\.5"),
        (["iterations=1.5"], r"iterations must be a whole number, got 1\.5"),
        (["iterations=null"], r"the run would never end: give at least one of iterations, epochs"),
        (["bits=-1"], r"bits must be a number >= 0 or null, got -1"),
        (["seconds=soon"], r"seconds must be a number, got 'soon'"),
        (["seed=-1"], r"seed must be a whole number >= 0"),
        (["threads=0"], r"threads must be a whole number >= 1"),
        (["log_every=0"], r"log_every must be a whole number >= 1"),
        (["n_workers=0"], r"n_workers must be a whole number >= 1"),
        (["n_workers=1000"], r"569 samples cannot be split among n_workers=1000"),
        (["dtype=float16"], r"dtype=float16 is not a choice; did you mean dtype=float64\?"),
        (["split=random"], r"split=random is not a choice\. The choices are contiguous"),
        (["compressor=topk"], r"Marina needs an unbiased compressor and TopK\(k=5\) is biased"),
        (["compressor.k=32"], r"RandK\.k must be between 1 and d = 31, got 32"),
        (["problem._target_=buropt.problems.logistics"], r"problem\._target_ must name a function"),
        (["problem._target_=nothing"], r"problem\._target_ must name a function"),
        (["data=libsvm"], r"no LIBSVM file was named"),
        (["overwrite=hello"], r"overwrite must be true or false, got 'hello'"),
        (["overwrite=0"], r"overwrite must be true or false, got 0"),
        (["data.standardize=maybe"], r"data\.standardize must be true or false, got 'maybe'"),
        (["compressor.k=true"], r"compressor\.k must be a number, got True"),
        (["seed=null"], r"seed must not be null"),
        (["checkpoint=3"], r"checkpoint=3 is no interval: write checkpoint\.seconds=3, or null"),
        (["optimizer.compressor=topk"], r"optimizer\.compressor cannot be 'topk': choose one with"),
        (["optimizer.compressor={k:1}"], r"optimizer\.compressor cannot be {'k': 1}: choose one"),
        (["data=libsvm", "data.path=3"], r"data\.path must be text, got 3: write it as \"'3'\""),
        (["data=libsvm", "data.path={a:1}"], r"data\.path must be one value, got {'a': 1}"),
        (["optimizer=scipy_cg", "optimizer.options=3"], r"optimizer\.options must be settings, "),
        (["seed=[1]"], r"seed must be a number, got \[1\]"),
        (["n_workers=null"], r"n_workers must not be null"),
        (["optimizer.step_size_factor=null"], r"optimizer\.step_size_factor must not be null"),
        (["~optimizer"], r"optimizer is missing: choose one, for example optimizer=gd"),
        (["~seed"], r"seed is missing"),
        (["threads=1e12"], r"threads must be at most 1024, got 1000000000000"),
        (["iterations=inf"], r"iterations must be a whole number, got inf"),
        (["+foo=3"], r"foo is not a setting\. .* bits, checkpoint, compressor, curve, data,"),
        (["problem=quadratic", "data=digits"], r"makes its own data: leave out data=\.\.\."),
        (["problem=quadratic", "problem.L=1e300"], r"smoothness constants are not finite"),
        (["optimizer=saga", "problem=nonconvex_logistic"], r"SAGA has no theorem for this problem"),
        (["optimizer=newton", "prox=l1"], r"Newton is for smooth problems .* leave out prox="),
        (["prox=ball", "prox.radius=-1", "optimizer=gd"], r"Ball\.radius must be a finite number"),
        (
            ["optimizer=sgd", "schedule=decreasing", "problem=logistic_nonconvex_reg"],
            r"give schedule\.after",
        ),
        (["problem=quadratic", "split=sorted"], r"nothing to split: leave out split=sorted"),
    ],
)
def test_mistakes_are_one_sentence(overrides: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        build(compose(*overrides))
    assert "\n" not in str(caught.value)


def documented() -> list[str]:
    """The lines of the page on sweeps that start buropt."""
    page = Path(__file__).parents[1] / "docs" / "sweeps.md"
    lines = page.read_text().splitlines()
    return [line for line in lines if line.startswith("buropt ")]


@pytest.mark.parametrize("line", documented())
def test_commands_of_the_page_on_sweeps(line: str) -> None:
    """The first job of each can be composed and has settings that exist."""
    words = [word for word in shlex.split(line, comments=True)[1:] if not word.startswith("-")]
    parsed = OverridesParser.create().parse_overrides(words)
    sweeps = {word for word, o in zip(words, parsed, strict=True) if o.is_sweep_override()}
    assert "-m" in line or "sweep=" in line or not sweeps
    (first, *_) = BasicSweeper.split_arguments(parsed, None)[0]
    config = compose(*first)
    settings_of(config)
    call(config["optimizer"], "optimizer")


@pytest.mark.parametrize("group", OVERLAYS)
def test_every_overlay_composes(group: str) -> None:
    for choice in choices(group):
        config = compose(f"{group}={choice}")
        settings_of(config)
        call(config["optimizer"], "optimizer")


def test_budgets() -> None:
    def limits(choice: str, *more: str) -> dict[str, Any]:
        budget = settings_of(compose(f"budget={choice}", *more)).budget
        return {name: value for name, value in vars(budget).items() if value is not None}

    assert limits("iterations") == {"iterations": 10000}
    assert limits("epochs", "epochs=1e1") == {"epochs": 10}
    assert limits("bits") == {"bits": 1e7}
    assert limits("seconds", "iterations=5") == {"seconds": 10, "iterations": 5}
    assert limits("tolerance") == {"iterations": 1000000, "tolerance": 1e-10}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["checkpoint.second=3"], "Could not override 'checkpoint.second'"),
        (["+checkpoint.hours=3"], r"checkpoint\.hours is not a setting.*checkpoint\.seconds"),
        (["checkpoint.seconds=often"], r"checkpoint\.seconds must be a number, got 'often'"),
        (["objective=speed"], "objective=speed is not a choice.* The choices are iteration, f,"),
    ],
)
def test_settings_of_checkpoints_and_sweeps(overrides: list[str], message: str) -> None:
    with pytest.raises((ValueError, HydraException), match=message):
        settings_of(compose(*overrides))


def test_launchers_that_are_not_installed() -> None:
    error = MissingConfigException("", "hydra/launcher/joblib", ["basic"])
    assert explain(error) == (
        "hydra/launcher=joblib is in a package of its own: pip install 'buropt[joblib]'"
    )


def test_a_missing_file_is_an_os_error() -> None:
    with pytest.raises(OSError, match="nowhere"):
        build(compose("data=libsvm", "data.path=nowhere"))
