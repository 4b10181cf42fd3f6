"""Translation in a process of its own: what the thread that builds schedulers calls, so that no
launch waits for the interpreter or for libclang.

In: a source, its options and the device's place in the list of devices, as JSON on stdin. Out: the
translation in the cache on disk, where the caller finds it. Invariant: a worker that fails, or
takes too long, costs time and nothing else; the caller then translates by itself.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

PATIENCE_S = 120.0


def run(source: str, options: Sequence[str], position: int) -> bool:
    """Have a worker translate; whether it says that it did."""
    order = {"source": source, "options": list(options), "position": position}
    return ask(__spec__.name, order)


def ask(module: str, order: dict[str, Any]) -> bool:
    """Run a module that takes an order on stdin; whether it ended well. Not where the executable
    is not Python but the program itself."""
    if not sys.executable or getattr(sys, "frozen", False):
        return False
    try:
        done = subprocess.run(
            [sys.executable, "-m", module],
            input=json.dumps(order), capture_output=True, text=True, timeout=PATIENCE_S,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def main() -> int:
    """The worker."""
    from acs_cl import devices
    from acs_cl.translate.clang import CannotParse
    from acs_cl.translate.functions import CannotTranslate, translate

    order: dict[str, Any] = json.load(sys.stdin)
    device = devices.devices()[order["position"]]
    with contextlib.suppress(CannotParse, CannotTranslate):  # the caller finds out, and says so
        translate(order["source"], order["options"], device, "k_")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
