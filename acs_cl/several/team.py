"""The team: the devices of a runtime, made from the options of a program.

Input: `Runtime(devices=...)` and its other options. Output: the devices, checked, and a backend and
a store for all of them. The error of a wrong choice says which choices there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyopencl as cl

from .. import devices as there
from ..backends.queues import HOST, HostQueues
from ..devices.contexts import begin_use, shared_context
from ..errors import UsageError, refuse_unknown
from ..memory.blocks import store_for
from ..records import NamedTuple
from .backend import Several
from .links import links_of
from .memory import Everywhere
from .policies import PLACEMENTS, Links

if TYPE_CHECKING:
    from ..records import Options, Plan

MOST = 16


class Team(NamedTuple):
    """Holds the devices of a runtime, and how launches are placed on them."""

    contexts: Sequence[cl.Context]
    devices: Sequence[cl.Device]
    backend: Several
    store: Everywhere
    links: Links
    placement: str
    spread: bool | None


def chosen(asked: object) -> list[cl.Device]:
    """Return the devices of `devices=`. "all": those of the default device's platform and kind. A
    list: each item is given as for `device=`; a device that is listed twice counts as two."""
    begin_use()
    if isinstance(asked, str):
        if asked != "all":
            raise UsageError(f'devices={asked!r}: expected "all", or a list such as [0, 1]')
        first = there.choose()
        found = [one for one in first.platform.get_devices() if one.type == first.type]
        return [there.choose(one) for one in found[:MOST]]
    if not isinstance(asked, Sequence) or isinstance(asked, (bytes, bytearray)) or not asked:
        raise UsageError(f'devices={asked!r}: expected "all", or a list such as [0, 1]')
    if len(asked) > MOST:
        raise UsageError(f"devices: got {len(asked)} of them, expected at most {MOST}")
    found = []
    for place, one in enumerate(asked):
        try:
            found.append(there.choose(one))
        except UsageError as error:
            raise UsageError(f"devices[{place}]: {error}") from None
    names = sorted({one.platform.name.strip() for one in found})
    if len(names) > 1:
        raise UsageError(
            f"devices: they are of several platforms ({', '.join(names)}); a runtime takes those "
            "of one"
        )
    return found


def check(asked: Options, placement: str) -> None:
    """Refuse options that a runtime of several devices does not support."""
    refuse_unknown("placement", placement, PLACEMENTS)
    if asked.backend != "auto" and asked.backend not in HOST:
        raise UsageError(
            f"backend={asked.backend!r} takes one device; with devices= there are: auto, "
            f"{', '.join(HOST)}"
        )


def planned(one: Plan, many: int) -> Plan:
    """Return the plan of several devices from that of one: its lanes, without a scheduler."""
    backend = one.host
    why = f"{many} devices, each with backend {backend}"
    return one._replace(backend=backend, scheduler="no", why=why)


def open_team(
    devices: Sequence[cl.Device],
    how: Plan,
    placement: str,
    spread: bool | None,
    is_traced: bool,
) -> Team:
    """Make a context, lanes and a store for each device. `is_traced`: all lanes keep times."""
    handles = [one.int_ptr for one in devices]
    contexts = [
        shared_context(one, handles[:place].count(one.int_ptr)) for place, one in enumerate(devices)
    ]
    pairs = list(zip(contexts, devices, strict=True))
    if how.memory == "svm":
        for one in devices:
            if not one.get_info(cl.device_info.SVM_CAPABILITIES):
                raise UsageError(
                    f"memory='svm': {one.name.strip()} has no shared virtual memory; use 'buffers'"
                )
    stores = [store_for(context, one, how.memory) for context, one in pairs]
    # other backends keep times on a queue of their own
    is_timed = how.host == "serial" and (placement == "min_finish" or spread is None)

    def lanes(keep_times: bool) -> list[HostQueues]:
        found = list[HostQueues]()
        for context, one in pairs:
            beside = found[0] if found else None
            found.append(
                HostQueues(how.host, context, one, how.lanes, keep_times, how.placing, beside)
            )
        return found

    names = [one.name.strip() for one in devices]
    return Team(
        contexts,
        devices,
        Several(lanes(is_timed or is_traced), names, lambda: lanes(True)),
        Everywhere(contexts[0], devices[0], stores),
        links_of(devices),
        placement,
        spread,
    )
