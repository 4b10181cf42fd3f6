"""Links for `acs-cl doctor`: the costs of copies between the devices of a platform.

Input: the devices. Output: a link for each pair, from the cache or measured by a runtime of all of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyopencl as cl

from ..runtime import Runtime
from ..several.engine import SeveralEngine
from ..several.links import keep, links_of, measured
from ..several.policies import ASSUMED, Link


def between(
    devices: Sequence[cl.Device], fresh: bool, say: Callable[[float], None] = lambda share: None
) -> dict[tuple[int, int], Link]:
    """Return the links between all pairs, and keep them. `fresh`: measure in any case."""
    known = links_of(devices)
    pairs = [(i, j) for i in range(len(devices)) for j in range(len(devices)) if i != j]
    if not fresh and all(known[i][j] is not ASSUMED for i, j in pairs):
        return {(i, j): known[i][j] for i, j in pairs}
    with Runtime(devices=list(devices), placement="round_robin") as runtime:
        engine = runtime.engine
        assert isinstance(engine, SeveralEngine)
        with engine.lock:
            found = measured(engine.copies.copier, engine.store.stores, say)
    for (source, target), link in found.items():
        keep(devices[source], devices[target], link)
    return found
