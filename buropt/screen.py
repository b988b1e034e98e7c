"""The program's output streams: when one fails, the run goes on without it.

with surviving_streams():
    print("a line")  # `| head` may have gone, or the disk behind `> log` be full
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast


class Screen:
    """A text stream that falls silent at its first error; all else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._failed = False

    def write(self, text: str) -> int:
        """Write, or drop the text; characters that the encoding lacks become question marks."""
        if not self._failed:
            try:
                self._stream.write(text)
            except UnicodeEncodeError as error:
                self.write(text.encode(error.encoding, "replace").decode(error.encoding))
            except OSError:
                self._fail()
        return len(text)

    def flush(self) -> None:
        """Flush, or give up."""
        if not self._failed:
            try:
                self._stream.flush()
            except OSError:
                self._fail()

    def _fail(self) -> None:
        """Send what is still buffered nowhere, or Python would complain about it at its end."""
        self._failed = True
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def surviving_streams() -> Iterator[None]:
    """While active, an error of stdout or stderr stops that stream's output and nothing else."""
    before = sys.stdout, sys.stderr
    screens = [stream and Screen(stream) for stream in before]  # None: started without the stream
    sys.stdout, sys.stderr = (cast("TextIO", screen) for screen in screens)
    try:
        yield
    finally:
        for screen in screens:
            if screen is not None:
                screen.flush()
        sys.stdout, sys.stderr = before
