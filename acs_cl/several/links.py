"""Links: the cost of moving bytes between devices, assumed or measured.

Input: devices, or their copier. Output: a link for each pair. `acs-cl doctor` measures links and
keeps them in the user's cache folder. A runtime uses what was kept for its devices and drivers.
Otherwise it measures links itself, once a launch is long enough to be moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyopencl as cl

from .. import devices as there
from ..errors import OutOfMemory
from ..host import files
from ..memory.blocks import Store
from .copies_at_once import Copier
from .policies import ASSUMED, Link, Links

FORMAT = 1
SMALL = 4 << 10
LARGE = 16 << 20
REPEATS = 5

_KIND = "links"


def links_of(devices: Sequence[cl.Device]) -> Links:
    """Return the links between some devices: those kept in the cache, else assumed ones."""
    return [[_kept(source, target) or ASSUMED for target in devices] for source in devices]


def measured(
    copier: Copier, stores: Sequence[Store], say: Callable[[float], None] = lambda share: None
) -> dict[tuple[int, int], Link]:
    """Copy few and many bytes between all devices, in own memory. The fastest copies count."""
    devices = range(len(stores))
    large = min(LARGE, min(one.largest for one in stores) // 4)
    blocks = []
    try:
        for store in stores:
            block = store.allocate(large, lambda number: False)
            if block is None:
                raise OutOfMemory(f"no {large:,} bytes left to measure links with")
            blocks.append(block)
        found: dict[tuple[int, int], Link] = {}
        pairs = [(i, j) for i in devices for j in devices if i != j]
        for done, (source, target) in enumerate(pairs):
            say(done / len(pairs))
            here, there, took_us = (source, blocks[source]), (target, blocks[target]), []
            for nbytes in (SMALL, large):
                move = copier.move(here, there, 0, nbytes, 0)
                took_us.append(min(copier.make([move]) for _ in range(REPEATS)))
            moving_us = max(took_us[1] - took_us[0], 1.0)
            found[source, target] = Link(took_us[0], (large - SMALL) / moving_us)
        return found
    finally:
        for store, block in zip(stores, blocks, strict=False):
            store.free(block, ())


def keep(source: cl.Device, target: cl.Device, link: Link) -> None:
    """Keep a link for later programs."""
    files.keep(_KIND, _name(source, target), FORMAT, {"link": list(link)})


def _kept(source: cl.Device, target: cl.Device) -> Link | None:
    name = _name(source, target)
    link = files.kept(_KIND, name, FORMAT, lambda found: Link(*map(float, found["link"])))
    return link if link is not None and link.latency_us >= 0 and link.bytes_per_us > 0 else None


def _name(source: cl.Device, target: cl.Device) -> str:
    pair = f"{there.key(source)} -> {there.key(target)}"
    return files.name_of(f"{pair} | PyOpenCL {cl.VERSION_TEXT}")
