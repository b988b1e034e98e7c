"""Mistakes in a command or a configuration, each told in one sentence."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from buropt.build import GROUPS, unknown_key
from buropt.names import nearest

CONFIGS = "pkg://buropt.conf"
OVERLAYS = ("budget", "experiment", "sweep")
EXTRAS = {
    "joblib": "'buropt[joblib]'",
    "submitit_local": "'buropt[submitit]'",
    "submitit_slurm": "'buropt[submitit]'",
    "optuna": "'buropt[optuna]'",
}


class UsageError(Exception):
    """A mistake of the person who started the run; shown as its message alone."""


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turns what a wrong configuration raises while a run is built into `UsageError`."""
    try:
        yield
    except MemoryError as error:
        raise UsageError(f"not enough memory: {first_line(error) or 'a size is huge'}") from error
    except OverflowError as error:
        raise UsageError(f"a number is too large: {first_line(error)}") from error
    except (ValueError, TypeError, OSError, OmegaConfBaseException) as error:
        raise UsageError(first_line(error)) from error


def explain(error: Exception) -> str:
    """One sentence for an error of the command line, with the valid choices."""
    if isinstance(error, MissingConfigException) and error.options:
        group, _, choice = str(error.missing_cfg_file).rpartition("/")
        if group in ("hydra/launcher", "hydra/sweeper") and choice in EXTRAS:
            return f"{group}={choice} is in a package of its own: pip install {EXTRAS[choice]}"
        near = nearest(choice, error.options)
        hint = f"; did you mean {group}={near}?" if near else "."
        return f"{group}={choice} is not a choice{hint} The choices are {', '.join(error.options)}."
    if isinstance(error, OverrideParseException):
        return unreadable(str(error.override), first_line(error))
    if str(error).startswith("Config group override must be"):
        words = [word for word in sys.argv[1:] if word.partition("=")[0] in (*GROUPS, *OVERLAYS)]
        return (
            f"a group takes the name of one of its choices, which --help lists: {' '.join(words)}"
        )
    several = re.match(r"(?:Ambiguous value for argument|Sweep parameters) '(.+?)'", str(error))
    if several:
        return f"{several.group(1)} has several values, which makes a sweep: add -m"
    unknown = re.match(r"Could not override '(.+)'\.", str(error))
    if unknown:
        place = unknown.group(1)
        while place:  # of compresor.k, it is compresor that does not exist
            valid = settings_beside(place, sys.argv[1:])
            if valid:
                return unknown_key(place, valid)
            place = parent(place)
    return first_line(error)


def unreadable(word: str, reason: str) -> str:
    """The sentence for an argument that Hydra's grammar does not have."""
    key, equals, value = word.partition("=")
    start = f"cannot read {word!r} on the command line"
    if not equals:
        return f"{start}: write {key}=value"
    if not value.startswith(("[", "{")) and not re.search(r"['\"\\]|,$", value):
        return f"{start}: quote the value, twice for the shell: \"{key}='{value}'\""
    return f"{start}: {reason}"


def settings_beside(place: str, arguments: list[str]) -> list[str]:
    """The keys that exist where `place` was looked for, given the groups chosen in `arguments`."""
    chosen = [
        item.split(",")[0]  # of a sweep, the first
        for item in arguments
        if item.partition("=")[0] in (*GROUPS, *OVERLAYS) or item.startswith("hydra/")
    ]
    GlobalHydra.instance().clear()
    with hydra.initialize_config_module(CONFIGS.removeprefix("pkg://"), version_base="1.3"):
        try:
            config = hydra.compose("config", overrides=chosen, return_hydra_config=True)
            node = OmegaConf.select(config, parent(place))
        except (HydraException, OmegaConfBaseException):
            return []
    keys = node if isinstance(node, DictConfig) else ()
    hidden = ("_target_", "hydra")  # the latter is not a setting of a run
    return [str(key) for key in keys if key not in hidden]


def parent(place: str) -> str:
    """optimizer.step_size -> optimizer; the root's name is empty."""
    return place.rpartition(".")[0]


def first_line(error: Exception) -> str:
    """The sentence of an error without what libraries hang below it."""
    return str(error).split("\n")[0]
