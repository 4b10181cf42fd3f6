"""One built scheduler: its kernel on the device, its limits, and facts about it."""

from __future__ import annotations

from typing import Any

import pyopencl as cl

from .. import core
from ..devices.driver import Origin
from ..records import NamedTuple
from .children import POOL_INDEX
from .notes import Notes
from .task import Body, Limits


class Scheduler:
    """Holds one built scheduler."""

    def __init__(
        self,
        native: Any,
        limits: Limits,
        bodies: dict[Origin, Body],
        facts: Facts,
        pool: cl.Buffer | None,
        text: Text,
        notes: Notes | None,
    ) -> None:
        self.native = native
        self.text = text
        self.notes = notes
        """Of its timed form, if that is in use."""
        self._forms: dict[bool, Form] = {notes is not None: Form(native, notes)}
        self.pool = pool
        """Memory for spawned items, an argument of the kernel. None: its tasks spawn nothing."""
        self.launcher = core.native.Launcher(
            core.native.QueueKernel(native), limits.group, pool is not None
        )
        """The kernel for the core, which sets all its arguments."""
        self.launcher.takes_notes = notes is not None
        self.limits = limits
        self.bodies = bodies
        self.facts = facts

    def add_timed(self, native: Any, notes: Notes | None) -> None:
        """Keep the timed form."""
        if self.pool is not None:
            native._set_arg_multi((POOL_INDEX, self.pool))
        self._forms[True] = Form(native, notes)

    @property
    def has_timed(self) -> bool:
        """Tell whether there is a timed form."""
        return True in self._forms

    def time(self, on: bool) -> None:
        """Use the timed form from now on, or the usual one, if it exists."""
        form = self._forms.get(on)
        if form is not None and form.native is not self.native:
            self.native, self.notes = form
            self.launcher.use(core.native.QueueKernel(self.native))
            self.launcher.takes_notes = self.notes is not None

    @property
    def limits(self) -> Limits:
        """Return its limits."""
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._limits = limits
        self.launcher.groups, self.launcher.child_slots = limits.groups, limits.child_slots


class Text(NamedTuple):
    """The text that a scheduler was built from."""

    source: str
    words: tuple[str, ...]
    registers: int | None
    length: int
    """Characters of its kernels."""


class Form(NamedTuple):
    """A scheduler's kernel, and its notes if it takes any."""

    native: Any
    notes: Notes | None


class Facts(NamedTuple):
    """Facts about a scheduler, for reports."""

    group: int
    kernels: tuple[str, ...]
    registers: int | None
    local_bytes: int
    resident_groups: int
    build_s: float
    loops: tuple[str, ...]
    """Why functions whose items are spawned run in loops."""
