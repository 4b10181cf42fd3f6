"""Translation in a process of its own, so that no launch waits for the interpreter or for libclang.

The thread that builds schedulers calls it. Input: a source, its options and the device's place in
the list of devices, as JSON on stdin. Output: the translation in the cache on disk, where the
caller finds it. Invariant: a worker that fails costs only time, because the caller then translates
by itself. `TooLate` if it does not end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from acs_cl.host import isolated


def run(source: str, options: Sequence[str], position: int, manners: isolated.Manners) -> bool:
    """Have a worker translate; return whether it reports success."""
    order = {"source": source, "options": list(options), "position": position}
    return isolated.ask(__spec__.name, order, manners=manners)


def main(order: isolated.Order) -> int:
    """Translate, in the worker."""
    from acs_cl import devices
    from acs_cl.opencl_c.functions.translation import CannotTranslate, translate
    from acs_cl.opencl_c.parse.clang import CannotParse

    device = devices.devices()[order["position"]]
    with contextlib.suppress(CannotParse, CannotTranslate):  # the caller reports the error
        translate(order["source"], order["options"], device, "k_")
    return 0
