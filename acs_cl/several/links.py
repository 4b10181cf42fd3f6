"""Links: what moving bytes between devices costs, assumed or measured.

In: devices, or an engine of them. Out: a link for each pair. `acs-cl doctor` measures and keeps
them in the user's cache folder; a runtime believes what was kept for these devices and drivers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
import pyopencl as cl

from .. import devices as there
from ..host import files
from ..host.digest import digest
from .engine import SeveralEngine
from .placement import ASSUMED, Link, Links

FORMAT = 1
SMALL = 4 << 10
LARGE = 32 << 20
REPEATS = 5

_KIND = "links"


def links_of(devices: Sequence[cl.Device]) -> Links:
    """What is known of the links between some devices."""
    return [[_kept(source, target) or ASSUMED for target in devices] for source in devices]


def measured(
    engine: SeveralEngine, say: Callable[[float], None] = lambda share: None
) -> dict[tuple[int, int], Link]:
    """Copy a small and a large array from each device to each other one; the fastest of some
    counts."""
    many = len(engine.team.devices)
    large = min(LARGE, engine.store.largest // 4)
    arrays = {size: engine.new_array((size,), np.dtype(np.uint8)) for size in (SMALL, large)}
    for array in arrays.values():
        array.fill(1).wait()
    found: dict[tuple[int, int], Link] = {}
    pairs = [(i, j) for i in range(many) for j in range(many) if i != j]
    for done, (source, target) in enumerate(pairs):
        say(done / len(pairs))
        took_us = {}
        for size, array in arrays.items():
            times = []
            for _ in range(REPEATS + 1):  # the first one allocates
                engine.have(array, source, alone=True)
                engine.drain()
                began = perf_counter()
                engine.have(array, target)
                engine.drain()
                times.append((perf_counter() - began) * 1e6)
            took_us[size] = min(times)
        moving_us = max(took_us[large] - took_us[SMALL], 1.0)
        found[source, target] = Link(took_us[SMALL], (large - SMALL) / moving_us)
    return found


def keep(source: cl.Device, target: cl.Device, link: Link) -> None:
    """Remember a link for later programs."""
    known = {"format": FORMAT, "key": _key(source, target), "link": list(link)}
    files.replace(_KIND, _name(source, target), json.dumps(known))


def _kept(source: cl.Device, target: cl.Device) -> Link | None:
    text = files.read(_KIND, _name(source, target))
    if text is None:
        return None
    try:
        known = json.loads(text)
        link = Link(*map(float, known["link"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    fits = known["format"] == FORMAT and known["key"] == _key(source, target)
    return link if fits and link.latency_us >= 0 and link.bytes_per_us > 0 else None


def _key(source: cl.Device, target: cl.Device) -> str:
    return f"{there.key(source)} -> {there.key(target)} | PyOpenCL {cl.VERSION_TEXT}"


def _name(source: cl.Device, target: cl.Device) -> str:
    return digest(_key(source, target), 32) + ".json"
