"""From a resolved configuration (plain dictionaries) to a problem, a method and a budget.

A node with `_target_` names a function or class and gives its arguments; `call` checks them against
the signature first, so that a misspelled key or a number that arrived as text is a clear sentence.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from buropt.budget import Budget
from buropt.history import Record
from buropt.names import named, nearest, require_choice

if TYPE_CHECKING:
    from buropt.checkpoint import Interval
    from buropt.data.split import SplitKind
    from buropt.loggers import Logger
    from buropt.optim.base import Optimizer
    from buropt.problems.base import Problem

Node = Mapping[str, Any]
GROUPS = ("data", "problem", "prox", "compressor", "schedule", "optimizer", "logger")
OVERLAYS = ("budget", "experiment", "sweep")  # whose choices set keys of the whole configuration
MOST_THREADS = 1024  # far above what is ever used
NOT_FINITE = (
    "the problem's smoothness constants are not finite: its numbers are too large for their "
    "square; scale the features of the data, as data.standardize=true does, or the problem's own "
    "constants"
)
BOOLS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class Settings:
    """The configuration's own keys, those outside the groups; their defaults are in config.yaml."""

    seed: int
    n_workers: int
    split: SplitKind
    dirichlet_alpha: float
    dtype: str
    threads: int | None
    iterations: int | None
    epochs: float | None
    bits: float | None
    seconds: float | None
    tolerance: float | None
    log_every: int | None
    verbose: bool
    overwrite: bool
    curve: bool
    checkpoint: Interval
    resume: Any
    objective: str

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("n_workers", 1), ("threads", 1), ("log_every", 1)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or value < least):
                raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
        if self.threads is not None and self.threads > MOST_THREADS:
            raise ValueError(f"threads must be at most {MOST_THREADS}, got {self.threads}")
        if self.seed >= 2**64:
            raise ValueError(f"seed must be below 2**64, got {self.seed}")
        for name, valid in (
            ("objective", Record._fields),
            ("dtype", ("float64", "float32")),
        ):
            require_choice(name, getattr(self, name), valid)

    @property
    def budget(self) -> Budget:
        """The limits among the settings."""
        return Budget(**{field.name: getattr(self, field.name) for field in fields(Budget)})


@dataclass(frozen=True)
class Experiment:
    """What a run needs, built and settled."""

    settings: Settings
    budget: Budget
    problem: Problem
    method: Optimizer[Any]
    title: str
    logger: Logger | None = None


def build(config: Node) -> Experiment:
    """Build everything that a configuration names.

    Raises
    ------
    ValueError, TypeError, OSError
        For a mistake in the configuration or an unreadable file; the message is one sentence.
    """
    for group in GROUPS:
        if config.get(group) and not isinstance(config[group], Mapping):
            raise ValueError(f"{group} must be settings with a _target_, got {config[group]!r}")
    settings = settings_of(config)
    budget = settings.budget  # a budget that never ends is refused before any work is done
    logger = call(config["logger"], "logger") if config.get("logger") else None
    for group, example in (("optimizer", "gd"), ("problem", "logistic")):
        if not config.get(group):
            raise ValueError(f"{group} is missing: choose one, for example {group}={example}")
    method: Optimizer[Any] = made(config, "optimizer", "theory")
    with np.errstate(over="ignore", invalid="ignore"):  # the outcome is looked at
        try:
            problem, data_name = build_problem(config, settings)
        except np.linalg.LinAlgError:  # "eigenvalues did not converge", which is about inf and nan
            raise ValueError(NOT_FINITE) from None
        if config.get("prox"):
            problem = problem.with_psi(call(config["prox"], "prox"))
        if not math.isfinite(problem.constants.L) or not np.isfinite(problem.constants.L_i).all():
            raise ValueError(NOT_FINITE)
        try:
            method = method.theory(problem)
        except ValueError:
            if math.isfinite(problem.constants.L_tilde):
                raise
            raise ValueError(NOT_FINITE) from None
    title = f"{method.label} on {problem.name}"
    if problem.psi is not None:
        title += f" + {problem.psi!r}"
    if data_name:
        title += f" ({data_name})"
    workers = "1 worker" if problem.n_workers == 1 else f"{problem.n_workers} workers"
    return Experiment(settings, budget, problem, method, f"{title}, {workers}", logger)


def settings_of(config: Node) -> Settings:
    """The keys of a configuration outside the groups; ValueError as for `build`."""
    own = {name: value for name, value in config.items() if name not in GROUPS}
    known = [*GROUPS, *(field.name for field in fields(Settings))]
    for name in own:
        if name in OVERLAYS:
            raise ValueError(
                f"the file of {name}=... must begin with the line '# @package _global_': its keys "
                "are those of the whole configuration"
            )
        if name not in known:
            raise ValueError(unknown_key(name, known))
    if "checkpoint" in own:
        every = own["checkpoint"]
        if not isinstance(every, Mapping):
            raise ValueError(
                f"checkpoint={every!r} is no interval: write checkpoint.seconds={every!r}, or null "
                "there for none"
            )
        own["checkpoint"] = {"_target_": "buropt.checkpoint.Interval", **every}
    settings: Settings = call({"_target_": "buropt.build.Settings", **own})
    return settings


def build_problem(config: Node, settings: Settings) -> tuple[Problem, str]:
    """Load the data if the problem takes any, split them among the workers and compile the loss.

    Returns
    -------
    (Problem, str)
        The problem; the name of the data, empty for a problem that makes its own.
    """
    if "A" not in parameters_of(config["problem"], "problem"):
        if config.get("data"):
            raise ValueError(
                "this problem makes its own data: leave out data=... or choose a problem that "
                "takes data, for example problem=logistic"
            )
        if settings.split != "contiguous":  # which is what leaving it out comes to
            raise ValueError(
                "this problem makes each worker's data itself and has nothing to split: leave out "
                f"split={settings.split}"
            )
        problem: Problem = made(config, "problem", "constants")
        return problem, ""
    if not config.get("data"):
        raise ValueError(
            "this problem needs data: choose for example data=breast_cancer or data=libsvm"
        )
    from buropt.data.split import split_workers  # SciPy comes with it, which --help can do without

    dataset = made(config, "data", "A")
    shards = split_workers(
        dataset.y,
        settings.n_workers,
        settings.split,
        alpha=settings.dirichlet_alpha,
        seed=settings.seed,
    )
    problem = made(config, "problem", "constants", A=dataset.A, y=dataset.y, split=shards)
    return problem, dataset.name


def made(config: Node, group: str, attribute: str, **given: Any) -> Any:
    """What a group's choice describes, which must have that attribute."""
    found = call(config[group], group, **given)
    if not hasattr(found, attribute):
        name = config[group]["_target_"]
        raise ValueError(f"{group}._target_={name} gives no {group}: it returned {found!r}")
    return found


def call(node: Node, where: str = "", **given: Any) -> Any:
    """What `node` describes; nodes inside it with a `_target_` are called first.

    Parameters
    ----------
    node : mapping
        `_target_`, and arguments by name.
    where : str
        The node's place in the configuration, for messages.
    **given
        Arguments that no configuration can hold.

    Raises
    ------
    ValueError
        If a key is not a parameter of the target or one is missing, or a number is not one.
    """
    parameters = parameters_of(node, where)
    arguments: dict[str, Any] = dict(given)
    for key, value in node.items():
        if key == "_target_":
            continue
        # A group's node is the same thing wherever it is used: optimizer.compressor is compressor.
        place = f"{where}.{key}" if where and key not in GROUPS else key
        if key not in parameters or key in given:
            raise ValueError(unknown_key(place, (name for name in parameters if name not in given)))
        if isinstance(value, Mapping) and "_target_" in value:
            arguments[key] = call(value, place)
        elif key in GROUPS:
            raise ValueError(
                f"{where}.{key} cannot be {value!r}: choose one with {key}=NAME, and write its "
                f"settings as {key}.SETTING=..."
            )
        else:
            arguments[key] = coerce(value, str(parameters[key].annotation), place)
    for key, parameter in parameters.items():
        if (
            key not in arguments
            and parameter.default is inspect.Parameter.empty
            and (parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY))
        ):
            raise ValueError(f"{where}.{key} is missing".removeprefix("."))
    return target_of(node, where)(**arguments)


def target_of(node: Node, where: str) -> Callable[..., Any]:
    """The function or class that `node` names."""
    name = str(node.get("_target_"))
    return named(f"{where}._target_", name, "a function or class such as buropt.optim.GD")


def parameters_of(node: Node, where: str) -> Mapping[str, inspect.Parameter]:
    """The parameters of what `node` names."""
    return inspect.signature(target_of(node, where)).parameters


def coerce(value: Any, annotation: str, place: str) -> Any:
    """Numbers and truth values as the parameter wants them.

    Text becomes a number where only a number makes sense: plain YAML reads 1e-3, and an environment
    variable any number, as text. A whole float becomes an int where an int is wanted:
    iterations=1e5. YAML's yes, no, on and off, which Hydra reads as text, are truth values.
    """
    kinds = {kind.strip() for kind in annotation.replace("typing.", "").split("|")}
    plain = kinds <= {"int", "float", "bool", "str", "None"}
    if value is None:
        if plain and "None" not in kinds:
            raise ValueError(f"{place} must not be null")
        return None
    if kinds <= {"bool", "None"}:
        truth = BOOLS.get(value.lower()) if isinstance(value, str) else value
        if not isinstance(truth, bool):
            raise ValueError(f"{place} must be true or false, got {value!r}")
        return truth
    if not kinds <= {"int", "float", "None"}:
        if "Mapping[str, Any]" in kinds and not isinstance(value, Mapping):
            raise ValueError(f"{place} must be settings, {place}={{name: value}}, got {value!r}")
        if isinstance(value, Mapping) and not {"Mapping[str, Any]", "Any"} & kinds:
            raise ValueError(f"{place} must be one value, got {dict(value)!r}")
        if "PathLike" in kinds and not isinstance(value, str):
            raise ValueError(f"{place} must be text, got {value!r}: write it as \"'{value}'\"")
        return value
    number = value
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = None
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise ValueError(f"{place} must be a number, got {value!r}")
    if "float" not in kinds and isinstance(number, float):
        if not number.is_integer():
            raise ValueError(f"{place} must be a whole number, got {number!r}")
        return int(number)
    return number


def unknown_key(place: str, valid: Iterable[str]) -> str:
    """The sentence for a key that does not exist: the nearest one that does, and all of them."""
    prefix, dot, key = place.rpartition(".")
    names = sorted(valid)
    near = nearest(key, names)
    hint = f"; did you mean {prefix}{dot}{near}?" if near else "."
    known = ", ".join(prefix + dot + name for name in names)
    return f"{place} is not a setting{hint} The settings here are {known or 'none'}."
