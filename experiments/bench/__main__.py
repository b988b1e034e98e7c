"""Buropt beside its peers, in one table.

    python -m experiments.bench                        # everything, everybody who is installed
    python -m experiments.bench tiny mlp --peers jax torch --turns 15
    python -m experiments.bench --data DIR             # with the files a9a, w8a, news20.bz2, ...
    python -m experiments.bench --quick                # no timing: do all the answers agree?
    python -m experiments.bench gpt --external "burtorch=./gpt_step {batch}"

Contestants of a case compute the same, which is checked, and take turns in one process; a time is
the median over the turns. A peer that is not installed is skipped, and the report says so. Install
them with ``pip install -e '.[peers]'``. An external program joins by a command that prints seconds
for one call; fields in braces are filled with the case's parameters.

Writes `bench.json` and `bench.png` to --out, beside the tables on the screen.
"""

from __future__ import annotations

import argparse
import os
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.bench.processes import CORES

if TYPE_CHECKING:
    from experiments.bench.contest import Result
    from experiments.bench.limits import Limits


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the command line, run the benchmarks, and report."""
    options = parse(argv)
    limit_threads(options.threads)
    # Imported late: libraries read the number of threads when they start.
    from experiments.bench import datasets, limits, page, picture, report, tables

    if options.data is not None:
        os.environ[datasets.FOLDER] = str(options.data.resolve())
    begin = time.perf_counter()
    peaks = None if options.quick else limits.measure()
    results, mistakes = run(options, peaks)
    sentences = list(report.closing(results))
    if peaks is not None:
        peaks = peaks.raised(results)
        for result in results:
            if result.flops or result.bytes:
                result.limit = peaks.seconds(result.flops, result.bytes, result.dtype)
        content = report.record(results, peaks, vars(options))
        report.write_json(content, options.out / "bench.json")
        picture.draw(results, options.out / "bench.png")
        if options.markdown is not None:
            options.markdown.write_text(page.all_tables(results))
        for table in report.all_tables(results):
            print(f"\n{table.text()}", end="")
        sentences.append(f"measured: {report.peaks_text(content['limits'])}")
        sentences.append(f"written to {options.out} after {time.perf_counter() - begin:.0f} s")
    print()
    for sentence in sentences:
        print(textwrap.fill(sentence, tables.WIDTH))
    if mistakes:
        raise SystemExit("\n".join(mistakes))


def run(options: argparse.Namespace, peaks: Limits | None) -> tuple[list[Result], list[str]]:
    """All cases that were asked for, a line on each; and which answers of buropt are wrong."""
    from experiments.bench import cases, contest, external, report

    results, mistakes = [], []
    programs = external_commands(options.external)
    turns = 0 if options.quick else options.turns
    for case in cases.select(options.names, options.quick):
        if options.cases and not any(text in case.title for text in options.cases):
            continue
        try:
            result = contest.run(case, options.peers, turns, options.seconds)
        except AssertionError as error:
            print(error, flush=True)
            mistakes.append(str(error))
            continue
        if peaks is not None:
            external.join(result, case, programs)
        for sentence in report.lines(result):
            print(sentence, flush=True)
        results.append(result)
    return results, mistakes


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.bench", description=(__doc__ or "").partition("\n\n")[0]
    )
    parser.add_argument("names", nargs="*", help="benchmarks; all by default")
    parser.add_argument("--cases", nargs="*", metavar="TEXT", help="only cases named like this")
    parser.add_argument("--peers", nargs="*", help="contestants besides buropt; all by default")
    parser.add_argument("--threads", type=int, default=1, help="threads of every contestant")
    parser.add_argument("--turns", type=int, default=9, help="turns of each contestant")
    parser.add_argument("--seconds", type=float, default=0.03, help="length of a turn")
    parser.add_argument("--quick", action="store_true", help="compare answers, time nothing")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of real data files")
    parser.add_argument("--external", nargs="*", default=[], metavar="NAME=COMMAND")
    parser.add_argument(
        "--out", type=Path, default=Path("."), help="folder of the JSON and picture"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there, too")
    return parser.parse_args(argv)


def external_commands(pairs: Sequence[str]) -> dict[str, str]:
    """External contestants: name to command."""
    commands = {}
    for pair in pairs:
        name, separator, command = pair.partition("=")
        if not separator or not name or not command:
            raise SystemExit(f"--external takes NAME=COMMAND, got {pair!r}")
        commands[name] = command
    return commands


def limit_threads(threads: int) -> None:
    """The same number of threads for everybody, before any library starts its pool."""
    for name in (
        *("BUROPT_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
        *("NUMEXPR_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
    ):
        os.environ[name] = str(threads)
    flags = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
    os.environ["XLA_FLAGS"] = f"{flags} intra_op_parallelism_threads={threads}"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["JAX_PLATFORMS"] = "cpu"
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        # Child processes with more threads take them from here.
        os.environ[CORES] = ",".join(map(str, cores))
        os.sched_setaffinity(0, cores[-threads:])


if __name__ == "__main__":
    main()
