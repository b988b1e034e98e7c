"""What tests of threads share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def on_a_small_stack(function: Callable[[], Any], kilobytes: int) -> Any:
    """The result of function(), or its exception, in a thread with such a stack."""
    results: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    before = threading.stack_size(kilobytes * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
