"""docs/methods.md: a table of all methods, from the notes of their docstrings.

python -m buropt.optim.catalogue > docs/methods.md
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from buropt import optim
from buropt.notes import configurations, escaped, notes, table
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
        *("Katyusha", "LKatyusha", "MiG"),
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
    "Compressed Hessians": ("FedNL", "FedNLPP"),
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


def page() -> str:
    """The text of docs/methods.md."""
    known = methods()
    choices = configurations("optimizer") | {"SciPy": "scipy_..."}  # one for each of SciPy's
    lines = [HEAD]
    for family, names in FAMILIES.items():
        rows = []
        for name in names:
            title = re.split(r"[,;.:(]", inspect.getdoc(known[name]) or "")[0].strip()
            cells = [f"{title}, `optim.{name}`, `optimizer={choices[name]}`"]
            rows.append(cells + [escaped(notes(known[name])[key].rstrip(".")) for key in NOTES])
        header = ["method", "problems", "step size", "oracle", "bits", "state", "source"]
        lines += [f"## {family}\n", *table(header, rows)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
