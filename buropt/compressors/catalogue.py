"""docs/compressors.md: a table of all compressors, from the notes of their docstrings.

python -m buropt.compressors.catalogue > docs/compressors.md
"""

from __future__ import annotations

from buropt import compressors
from buropt.compressors.base import Compressor
from buropt.notes import configurations, escaped, notes, table

NOTES = ("Class", "Bits", "Source")
FAMILIES = {
    "Entries chosen before the vector is known": (
        *("Identity", "RandK", "RandSeqK", "PermK", "Bernoulli"),
    ),
    "The largest entries": ("TopK", "TopLEK", "BlockTopK"),
    "Every entry, rounded": (
        *("NaturalCompression", "RandomDithering", "NaturalDithering", "TernGrad"),
        *("ScaledSign", "Sign"),
    ),
    "Matrices of low rank": ("RankR", "PowerSGD"),
    "Made of others": ("Composition", "Scaled"),
}
HEAD = """# Compressors

Every compressor of `buropt.compressors`, from the notes of its docstring
(`python -m buropt.compressors.catalogue` writes this page). The docstring has the definition, the
parameters and what is proved.

An unbiased compressor states omega: E C(x) = x and E|C(x) - x|^2 <= omega |x|^2. A contractive one
states alpha: E|C(x) - x|^2 <= (1 - alpha)|x|^2. "Exact" is an equality for every x, "tight" one for
some x. Bits are of one message for d entries of b bits, 32 or 64. They are the bits of
`encode(x, key)`, which fills the last byte with zeros, and `decode` gives back what `compress`
gives, bit for bit. Draws are a function of the key and the number of the worker.

Methods for unbiased compressors (MARINA, DIANA, DASHA ...) refuse biased ones. Methods with error
feedback (EF21 ...) take contractive compressors, and unbiased ones as C/(1 + omega), whose alpha is
1/(1 + omega). PermK draws for all workers together; MARINA has a theorem for that, and error
feedback takes it too. How fast all are: [compressor_speed.md](compressor_speed.md).
"""


def classes() -> dict[str, type[Compressor]]:
    """All compressors by their names, without the kinds that they are of."""
    public = {name: getattr(compressors, name) for name in compressors.__all__}
    return {
        name: cls
        for name, cls in public.items()
        if issubclass(cls, Compressor) and not cls.__abstractmethods__
    }


def page() -> str:
    """The text of docs/compressors.md."""
    known, choices = classes(), configurations("compressor")
    lines = [HEAD]
    for family, names in FAMILIES.items():
        rows = [
            [f"`{name}`, `compressor={choices[name]}`"]
            + [escaped(notes(known[name])[key].rstrip(".")) for key in NOTES]
            for name in names
        ]
        lines += [f"## {family}\n", *table(["compressor", "class", "bits", "source"], rows)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
