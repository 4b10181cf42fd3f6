"""Arrays on several devices, and the engine that holds them.

Input: arrays, and which device writes them. Output: memory on the devices that need it, and where
bytes are valid. The engine that makes launches inherits from it, and copies are made for it.

Invariant: hazards know the memory of each device under its own base numbers. The core makes
launches by itself only on bases that the first device alone has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns

from .. import core
from ..errors import OutOfMemory, UsageError
from ..launch import bases
from ..launch.books import Parts
from ..launch.engine import Calls, Engine
from ..launch.observers import Checker
from ..launch.poisoning import lose, may_be_poisoned
from ..memory.array import Array
from ..memory.blocks import Base, Block
from ..records import EVERYTHING, Access, Span, interval
from .backend import Several
from .memory import Blocks, Everywhere, real_base
from .model import Model
from .team import Team


class ArrayEngine(Engine):
    """Knows where the arrays of a runtime are."""

    is_several = True
    backend: Several
    store: Everywhere

    def __init__(self, parts: Parts, calls: Calls, team: Team) -> None:
        super().__init__(parts, calls)
        self.team = team
        self.model = Model(len(team.devices))
        self.blocks: dict[int, Blocks] = {}
        """The memory of each base."""
        self.left: set[int] = set()
        """The bases whose launches the core leaves to this engine."""
        self.on_host: list[int] = []
        """Host tasks that may not have ended."""
        self.forgets: list[Callable[[int], None]] = []
        """Are told of each base that is freed."""
        self.store.freed = self._freed

    def check(self, checker: Checker) -> None:
        """Have launches checked. The first device then always has all memory."""
        self.checker = checker
        self.store.is_all_at_home = True

    def leave(self, base: int) -> None:
        """Stop the core from making launches on a base, before another device gets its bytes."""
        if base not in self.left:
            self.left.add(base)
            self.hazards.leave(base)

    def take_up(self, base: int) -> None:
        """Let the core make launches that touch a base, if only the first device has it."""
        blocks = self.blocks[base]
        if blocks.address and self.model.coherence.settle(base, blocks.size):
            self.left.discard(base)
            self.hazards.take_up(base)

    def may_be_poisoned(self, access: Access) -> bool:
        """Tell whether any of these bytes are poisoned on a device, or may be by a launch that has
        not run yet."""
        devices = range(len(self.team.devices))
        return any(may_be_poisoned(self, self.real(access, device)) for device in devices)

    def any_may_be_poisoned(self) -> bool:
        """Tell whether bytes are poisoned, or may become so by a launch that has not run yet. A
        launch that reads poison does not run at all, but its parts could not know that."""
        if self.failures.poison:
            return True
        if not self.on_host and not self.foreign:
            return False
        self.on_host = [number for number in self.on_host if number in self.table]
        return bool(self.on_host) or any(number in self.table for number in self.foreign)

    def lose(self, access: Access) -> None:
        """Lose all that is written, on the first device, since what is read is poisoned on one of
        them."""
        with self.lock:
            for device in range(len(self.team.devices)):
                read = self.real(access, device).reads
                if self.failures.reads_poison(Access(read, ())) is not None:
                    arrays = tuple(span for span in access.writes if span.base > 0)
                    self.written(arrays, 0)
                    lose(self, Access(read, arrays))
                    return

    def written(self, spans: Sequence[Span], device: int) -> None:
        """Note that only this device has these bytes from now on."""
        for span in spans:
            if span.base == EVERYTHING:
                self.written(self.all_spans(), device)
            elif span.base > 0:
                if device:
                    self.leave(span.base)
                self.model.coherence.written(span, device)

    def new_base(self, nbytes: int) -> Base:
        """Allocate memory that no device has yet."""
        base = super().new_base(nbytes)
        assert isinstance(base.block, Blocks)
        base.block.number = base.number
        self.blocks[base.number] = base.block
        self.leave(base.number)
        if self.checker is not None:  # checks give it contents
            self.model.coherence.written(interval(base.number, 0, base.block.size), 0)
        return base

    def is_used(self, base: int) -> bool:
        """Tell whether launches in flight use a base on any device."""
        devices = range(len(self.team.devices))
        return any(self.hazards.is_used(real_base(base, device)) for device in devices)

    def raise_for_bytes(self, spans: Sequence[Span], what: str) -> None:
        """Do nothing here: only the launch that reads knows which device has the bytes."""

    def tell_address(self, array: Array) -> None:
        """Refuse, because an array on several devices has several addresses."""
        raise UsageError(
            "data: with several devices an array has no one place; get() it, or use one device"
        )

    def _freed(self, blocks: Blocks, device: int) -> tuple[int, ...]:
        """Forget a part of a block that was freed. Return the launches that may still use it."""
        self.blocks.pop(blocks.number, None)
        for forget in self.forgets:
            forget(blocks.number)
        self.left.discard(blocks.number)
        self.model.coherence.forget(blocks.number)
        self.model.clock.forget(blocks.number, device)
        real = real_base(blocks.number, device)
        users = self.hazards.users(real)
        self.hazards.forget(real)
        self.failures.poison.forget(real, users, self.hazards.is_live)
        self.note_poison()
        return users

    def have_part(self, blocks: Blocks, device: int) -> Block:
        """Return the block of an array on a device; make it if there is none yet."""
        if (known := blocks.parts[device]) is not None:
            return known
        is_live = self.hazards.is_live
        block, is_new = self.store.part(blocks, device, is_live)
        for is_last in (False, True):
            if block is not None:
                break
            if is_last and not (self.table.held or self.host_tasks.busy):
                self.come_to_rest()
            bases.take_back(self)
            self.store.release_unused(is_live)
            block, is_new = self.store.part(blocks, device, is_live)
        if block is None:
            store = self.store.stores[device]
            raise OutOfMemory(
                f"no {blocks.size:,} bytes left on device {device} "
                f"({self.team.devices[device].name.strip()}; {store.reserved_bytes:,} reserved, "
                f"{store.in_use_bytes:,} in arrays)"
            )
        if is_new and block.users:
            self.hazards.inherit(real_base(blocks.number, device), block.users)
        return block

    def real(self, access: Access, device: int) -> Access:
        """Return the access with the base numbers of a device."""
        if not device:
            return access
        return access.moved(lambda one: one._replace(base=real_base(one.base, device)))

    def all_spans(self) -> list[Span]:
        """Return all bytes that were written."""
        coherence = self.model.coherence
        return [piece.span for base in self.blocks for piece in coherence.all_of(base)]

    def lanes_of(self, device: int) -> core.native.Queues:
        """Return the lanes of a device, for the core."""
        return self.backend.backends[device].core_queues

    def now_ns(self) -> int:
        """Return the time if calls are traced, else 0."""
        return perf_counter_ns() if self.tracer is not None else 0
