"""Run a function in several threads at once, and raise what one of them raised."""

from __future__ import annotations

import threading
from collections.abc import Callable

THREADS = 4


def in_threads(work: Callable[[int], None], count: int = THREADS) -> None:
    """Run `work(0)` … `work(count - 1)` at the same time; raise what one of them raised."""
    errors: list[BaseException] = []
    together = threading.Barrier(count)

    def one(index: int) -> None:
        try:
            together.wait()
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
