"""Mistakes in a command or a configuration, each told in one sentence."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import hydra
import yaml
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from buropt.build import GROUPS, OVERLAYS, unknown_key
from buropt.names import nearest

CONFIGS = "pkg://buropt.conf"
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
    lists = [word for word in group_words() if word.partition("=")[2].startswith("[")]
    if str(error).startswith("Config group override must be") or (
        lists and isinstance(error, (TypeError, MissingConfigException))
    ):
        return no_choice((lists or group_words())[0])
    several = re.match(r"(?:Ambiguous value for argument|Sweep parameters) '(.+?)'", str(error))
    if several:
        hidden = other_mistake(sys.argv[1:])
        if hidden is not None:
            return explain(hidden)
        return f"{several.group(1)} has several values, which makes a sweep: add -m"
    if "INTERVAL_SWEEP" in str(error):
        return "interval(...) is for a sweep by Optuna: add sweep=optuna_step_size"
    if str(error).startswith("Error merging override ") and error.__cause__ is not None:
        word = first_line(error).removeprefix("Error merging override ")
        return f"{word} cannot be: {str(error.__cause__).splitlines()[0]}"
    unknown = re.match(r"Could not override '(.+)'\.", str(error))
    if unknown:
        return not_there(unknown.group(1)) or " ".join(str(error).splitlines()[:2])
    if isinstance(error, (HydraException, OmegaConfBaseException, OSError, ValueError)):
        return first_line(error)
    if isinstance(error, yaml.YAMLError):  # which says where, in several lines
        return " ".join(str(error).split())
    where = traceback.extract_tb(error.__traceback__)[-1].name
    said = f"{type(error).__name__} in {where}: {first_line(error)}".removesuffix(": ")
    return f"Hydra cannot use this command line ({said}); HYDRA_FULL_ERROR=1 shows the place"


def other_mistake(arguments: list[str]) -> Exception | None:
    """What is wrong beside several values; Hydra forgets that sweep=joblib makes a sweep then."""
    words = [word for word in arguments if re.fullmatch(r"[^-][^=]*=[^,()]*", word)]
    try:
        composed(words)
    except (HydraException, OmegaConfBaseException) as error:
        return error
    return None


def composed(overrides: list[str]) -> DictConfig:
    """The whole configuration, Hydra's own included, that overrides make."""
    GlobalHydra.instance().clear()
    with hydra.initialize_config_module(CONFIGS.removeprefix("pkg://"), version_base="1.3"):
        return hydra.compose("config", overrides=overrides, return_hydra_config=True)


def group_words() -> list[str]:
    """The arguments that choose something."""
    groups = (*GROUPS, *OVERLAYS, "hydra")
    return [word for word in sys.argv[1:] if word.partition("=")[0] in groups]


def no_choice(word: str) -> str:
    """The sentence for a group that is given another value than a name."""
    group = word.partition("=")[0]
    GlobalHydra.instance().clear()
    with hydra.initialize_config_module(CONFIGS.removeprefix("pkg://"), version_base="1.3"):
        names = GlobalHydra.instance().config_loader().get_group_options(group)
    return f"{word} names no choice: write {group}=NAME, where NAME is one of {', '.join(names)}"


def not_there(place: str) -> str:
    """The sentence for a key that does not exist; empty for a package, which is no key."""
    if "@" in place:
        return ""
    given = in_braces(place)
    chosen = [word for word in group_words() if word.startswith(f"{place}={{")]
    if chosen:
        key = place_of(place, given[0] if given else "SETTING")
        return f"{no_choice(chosen[0])}; a setting of the choice is written {key}=..."
    if given:
        there = settings_beside(f"{place}.{given[0]}", sys.argv[1:]) or []
        place = next((f"{place}.{key}" for key in given if key not in there), place)
    while place:  # of compresor.k, it is compresor that does not exist
        keys = settings_beside(place, sys.argv[1:])
        valid = [key for key in keys or () if key != "_target_"]
        if place.rpartition(".")[2] in valid:
            return f"{place} has no settings below it: write {place}=..."
        if keys:
            return unknown_key(place, valid)
        if keys is not None:
            return f"{parent(place)} has no settings of its own: add one with +{place}=..."
        place = parent(place)
    return ""


def place_of(group: str, key: str) -> str:
    """Where a setting of a group's choice is: those of an overlay are the configuration's own."""
    return key if group in OVERLAYS else f"{group}.{key}"


def in_braces(place: str) -> list[str]:
    """The keys that an argument sets at once: of data={a: 1, b: 2}, a and b."""
    words = [word for word in sys.argv[1:] if word.startswith(f"{place}={{")]
    for override in OverridesParser.create().parse_overrides(words):
        value = override.value()
        if isinstance(value, dict):
            return [str(key) for key in value]
    return []


def unreadable(word: str, reason: str) -> str:
    """The sentence for an argument that Hydra's grammar does not have."""
    key, equals, value = word.partition("=")
    start = f"cannot read {word!r} on the command line"
    if not equals:
        return f"{start}: write {key}=value"
    if value.startswith(("[", "{", "'", '"')) or value.endswith(",") or '"' in value:
        return f"{start}: {reason}"
    inside = value.replace("'", r"\'")  # a backslash has its own meaning before a quote alone
    return f"{start}: quote the value, twice for the shell: \"{key}='{inside}'\""


def settings_beside(place: str, arguments: list[str]) -> list[str] | None:
    """The keys that exist where `place` was looked for, given the groups chosen in `arguments`.

    None if there is nothing that could have keys.
    """
    chosen = [
        item.split(",")[0]  # of a sweep, the first
        for item in arguments
        if item.partition("=")[0] in (*GROUPS, *OVERLAYS) or item.startswith("hydra/")
    ]
    try:
        node = OmegaConf.select(composed(chosen), parent(place))
    except (HydraException, OmegaConfBaseException):
        return None
    if not isinstance(node, DictConfig):
        return None
    return [str(key) for key in node if key != "hydra"]  # which is not a setting of a run


def parent(place: str) -> str:
    """optimizer.step_size -> optimizer; the root's name is empty."""
    return place.rpartition(".")[0]


def first_line(error: Exception) -> str:
    """The sentence of an error without what libraries hang below it."""
    return str(error).split("\n")[0]
