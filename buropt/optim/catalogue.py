"""docs/methods.md: a table of all methods, from the notes of their docstrings.

python -m buropt.optim.catalogue > docs/methods.md
"""

from __future__ import annotations

import importlib.resources
import inspect
import re
from typing import Any

from buropt import optim
from buropt.optim.base import FixedStep, Optimizer

NOTES = ("Problems", "Step size", "Oracle", "Bits", "Memory", "Source")
FAMILIES = {
    "Full gradients and Hessians": (
        *("GD", "HeavyBall", "Nesterov", "AdGD", "PolyakStep", "Armijo", "Wolfe"),
        *("Newton", "CubicNewton", "SciPy"),
    ),
    "Random batches": (
        *("SGD", "Momentum", "NesterovSGD", "AdaGrad", "RMSProp", "Adam", "AdamW", "SPS"),
    ),
    "Variance reduction": (
        *("SVRG", "LSVRG", "SAGA", "SAG", "SARAH", "Spider", "SpiderBoost", "PAGE"),
        *("Katyusha", "LKatyusha"),
    ),
    "Coordinates": ("RCD", "SEGA"),
    "Unbiased compression": (
        *("DCGD", "Diana", "VRDiana", "ADiana", "Marina", "VRMarina", "PPMarina"),
        *("DASHA", "DASHAPAGE", "DASHAMVR", "COFIG", "FRECON"),
    ),
    "Error feedback": (
        *("EF14", "EF21", "EF21HB", "EF21BC", "EF21PP", "EF21PAGE", "EF21W"),
        *("EF21SGD", "EF21SGDM", "LAG", "CLAG"),
        *(f"ThreePCv{version}" for version in range(1, 6)),
    ),
    "Local steps": ("FedAvg", "Scaffold", "ProxSkip"),
    "Compressed Hessians": ("FedNL",),
}
HEAD = """# Methods

Every method of `buropt.optim`, from the notes of its docstring (`python -m buropt.optim.catalogue`
writes this page). The docstring has the algorithm, the theorem and its parameters; the first column
what to write on the command line.

Constants are those of the problem: L, L_i, Lmax (the largest L_i; of single samples for the methods
that draw them), L~ (root mean square of the L_i), L+, mu; N samples, n workers, d variables; omega
and alpha, theta, beta belong to the compressor. The oracle's column is for one iteration: a full
gradient is one gradient of every sample. Bits are for one worker; a float has 64 or 32. "With prox"
means that a part psi that is not smooth (`prox=...`) is allowed.
"""


def methods() -> dict[str, type[Optimizer[Any]]]:
    """All methods by the names of their classes."""
    bases = (Optimizer, FixedStep)
    public = {name: getattr(optim, name) for name in optim.__all__}
    return {name: cls for name, cls in public.items() if cls not in bases}


def notes(cls: type[Optimizer[Any]]) -> dict[str, str]:
    """The notes of a method's docstring, each as one line."""
    text = inspect.getdoc(cls) or ""
    found = re.findall(
        r"^([A-Z][a-z ]+): (.*(?:\n +.*)*)", text.partition("Notes\n-----\n")[2], re.MULTILINE
    )
    return {key: " ".join(value.split()) for key, value in found}


def page() -> str:
    """The text of docs/methods.md."""
    known, choices = methods(), configurations()
    lines = [HEAD]
    for family, names in FAMILIES.items():
        lines.append(f"## {family}\n")
        lines.append("| method | problems | step size | oracle | bits | state | source |")
        lines.append("|---|---|---|---|---|---|---|")
        for name in names:
            title = re.split(r"[,;.:(]", inspect.getdoc(known[name]) or "")[0].strip()
            cells = [f"{title}, `optim.{name}`, `optimizer={choices[name]}`"]
            cells += [escaped(notes(known[name])[key].rstrip(".")) for key in NOTES]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def configurations() -> dict[str, str]:
    """By the name of a method's class the name of its configuration."""
    folder = importlib.resources.files("buropt.conf").joinpath("optimizer")
    found = {}
    for entry in folder.iterdir():
        target = re.search(r"^_target_: buropt\.optim\.(\w+)$", entry.read_text(), re.MULTILINE)
        if target:
            found[target[1]] = entry.name.removesuffix(".yaml")
    return found | {"SciPy": "scipy_..."}  # one for each of SciPy's methods


def escaped(text: str) -> str:
    """Text as Markdown shows it in a table."""
    return re.sub(r"([*~|_])", r"\\\1", text)


if __name__ == "__main__":
    print(page(), end="")
