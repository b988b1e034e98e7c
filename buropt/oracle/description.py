"""`Description`: what an oracle has compiled, as a dict that prints as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_STAGES = {
    "before": "once for a call",
    "tile": "for each tile of samples",
    "after": "once for a batch",
}


class Description(dict[str, Any]):
    """A dict of what was compiled; its text is a short report.

    The report names what it costs to know: it lists the programs that exist, and compiles none.
    """

    def __repr__(self) -> str:
        lines = [self["oracle"], f"data: {_bytes(self['data_bytes'])}"]
        for name, program in self["programs"].items():
            lines += ["", *_program(name, program)]
        return "\n".join(lines)


def _program(name: str, program: Mapping[str, Any]) -> list[str]:
    head = f"{name}: {program['nodes']} nodes, {program['instructions']} instructions"
    if program["executor"] == "scalar":
        head += " on single numbers"
    lines = [head]
    stages = program["stages"]
    if stages["tile"]:
        slots = program["slots"]
        lines.append(
            f"  runs in tiles of {program['tile']} samples, in {slots} slot{'s' * (slots > 1)}; "
            f"about {program['work_per_sample']} multiply-adds a sample"
        )
        per_stage = [f"{stages[stage]} {says}" for stage, says in _STAGES.items() if stages[stage]]
        lines.append(f"  instructions: {', '.join(per_stage)}")
    if program["table_samples"]:
        lines.append(
            f"  from {program['table_samples']} samples on, looked-up rows are multiplied once"
        )
    memory = {
        "values": program["arena_bytes"],
        "sums of a slot": program["accumulator_bytes"],
        "scratch": program["scratch_bytes"],
        "constants": program["constant_bytes"],
        "data without their zeros": program["copied_bytes"],
        "sparse data for full batches (shared)": program["sliced_bytes"],
    }
    sizes = [f"{what} {_bytes(size)}" for what, size in memory.items() if size]
    if sizes:
        lines.append(f"  memory: {', '.join(sizes)}")
    counts = sorted(program["primitives"].items(), key=lambda item: (-item[1], item[0]))
    lines += _wrapped("  primitives: ", [f"{name} {count}" for name, count in counts])
    return lines


def _wrapped(start: str, words: list[str], width: int = 88) -> list[str]:
    lines = [start]
    for k, word in enumerate(words):
        word += ", " if k + 1 < len(words) else ""
        if len(lines[-1]) + len(word) > width:
            lines.append(" " * len(start))
        lines[-1] += word
    return [line.rstrip() for line in lines]


def _bytes(size: int) -> str:
    """Such as 320 B, 12.5 kB, 3.1 MB."""
    if size < 1000:
        return f"{size} B"
    for factor, unit in ((1e3, "kB"), (1e6, "MB")):
        if size < 999.95 * factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size / 1e9:.1f} GB"
