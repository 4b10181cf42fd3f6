"""Which core serves: the native one where it was built, Python wherever it was not.

In: what was installed, and the environment. Out: `hazards()`, `recorder()`, `ledger()`, `lock()`,
the bases of kernels, handles and arrays, whether they are native, and what to say about it. Both
give the same answers, edge by edge and word by word; nobody else asks which one there is, but for
those who have the core make launches itself (`packer`, `kernel`, `runtime`).
"""

from __future__ import annotations

import os
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from . import epochs, waiting
from .footprints import ReplayHazards
from .ledger import Ledger
from .records import Access

INTERFACE = 23
"""What this module expects of the native core; a core of other sources is not used."""


def _load() -> tuple[Any, str]:
    """The native core, or None; and why."""
    if os.environ.get("ACS_CL_PURE", "") not in ("", "0"):
        return None, "ACS_CL_PURE is set"
    try:
        native: Any = import_module("acs_cl._core")
        interface = native.INTERFACE
    except (ImportError, AttributeError) as error:
        why = "it was not built" if isinstance(error, ModuleNotFoundError) else str(error)
        return None, why
    if interface != INTERFACE:
        return None, f"it was built from other sources (interface {interface}, not {INTERFACE})"
    return native, "it was built"


native, WHY = _load()
NATIVE = native is not None
ABOUT = "native" if NATIVE else f"pure Python ({WHY})"


def hazards() -> ReplayHazards:
    """A new index of live accesses."""
    made: ReplayHazards = native.Hazards() if NATIVE else ReplayHazards()
    return made


def queues() -> Any:
    """What keeps the queues of a host backend, or None: then the backend does."""
    return native.Queues if NATIVE else None


def ledger() -> Ledger:
    """A new ledger."""
    made: Ledger = native.Ledger() if NATIVE else Ledger()
    return made


def lock() -> Any:
    """A new lock, as `threading.RLock`, that can be waited with. While the main thread holds the
    native one, signals wait (`_core/signals.hpp`)."""
    return native.Lock() if NATIVE else waiting.Lock()


def signals() -> int:
    """How many have come that programs handle in Python, for who wants to know of new ones."""
    return int(native.signals()) if NATIVE else 0


def use_this_thread() -> None:
    """After a fork: the calling thread is the main one."""
    if NATIVE:
        native.use_main_thread(threading.get_ident())


if NATIVE:
    native.use_main_thread(threading.main_thread().ident)


def _recorder() -> type[epochs.Recorder]:
    """Takes tasks as the core does, and makes images of them as Python does where the order is
    not the program's."""
    if not NATIVE:
        return epochs.Recorder

    def image(
        self: Any,
        spare: int,
        order: epochs.Order = epochs.first_in,
        window: int = 0,
        stale: int = 0,
        blocks: int = 1,
        gang: bool = True,
        with_levels: bool = False,
    ) -> epochs.Image:
        if window or order is not epochs.first_in or with_levels:
            return epochs.Recorder.image(
                self, spare, order, window, stale, blocks, gang, with_levels
            )
        words, width, block, block_words = self._image(spare, stale, blocks, gang)
        return epochs.Image(
            np.frombuffer(words, np.uint32), self.tasks, width, block, block_words, ()
        )

    made: Any = type("Recorder", (native.Recorder,), {"image": image})
    made._assemble = epochs.Recorder._assemble
    native_recorder: type[epochs.Recorder] = made
    return native_recorder


recorder = _recorder()
"""A new recorder of an epoch."""


if TYPE_CHECKING or not NATIVE:

    class Caller:
        """What a kernel inherits from. The native one is called, makes plain launches itself, and
        hands the others to `_call`."""

    class Handle:
        """What a launch gives back, without what it can do."""

        __slots__ = ("_access", "_result", "_runtime", "name", "number")

        def __init__(
            self, runtime: Any, number: int, name: str, access: Access, result: Any = None
        ) -> None:
            self._runtime = runtime
            self.number = number
            self.name = name
            self._access = access
            self._result = result

        @property
        def access(self) -> Access:
            """The bytes that the launch reads and writes."""
            return self._access

    class View:
        """What an array inherits from: what launches ask of it."""

        __slots__ = (
            "_address",
            "_argument",
            "_home",
            "_place",
            "_runtime",
            "_spans",
            "dtype",
            "nbytes",
            "size",
        )

else:
    Caller, Handle, View = native.Caller, native.Handle, native.View
