"""Ctrl-C and SIGTERM in `python -m buropt.run`: one line at any time, also during the imports.

Python would print a traceback, and extension modules that are being imported turn an interruption
into an ImportError. This is therefore imported first, and does nothing where buropt is a library.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

undone: list[Callable[[], None]] = []
"""What takes back what the program has done so far, the last thing at the end."""


def quit_at_once(number: int, frame: FrameType | None) -> None:
    """A signal handler: say so, and end with a shell's exit code, leaving no empty folder."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is sys.stderr:
                stream.write("buropt: interrupted\n")
            stream.flush()
        except Exception:  # closed, failing, or in the middle of a write
            continue
    while undone:
        try:
            undone.pop()()
        except Exception:  # a folder that cannot be removed
            continue
    os._exit(128 + number)


def is_program() -> bool:
    """Whether this process was started as buropt, and not by a program that imports it."""
    if sys.argv[:1] == ["-m"]:  # what Python leaves there until the module has been found
        after = sys.orig_argv[sys.orig_argv.index("-m") + 1 :] if "-m" in sys.orig_argv else []
        return after[:1] == ["buropt.run"]
    return os.path.basename(sys.argv[0] if sys.argv else "") in ("buropt", "buropt.exe")


# Not where the interruption is ignored (nohup) or somebody else's business.
if is_program():
    for polite, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGTERM, signal.SIG_DFL),
    ):
        if signal.getsignal(polite) is usual:
            signal.signal(polite, quit_at_once)
