"""The checker of one runtime: it runs the checks around each launch.

Input: every launch, before it has a number; arrays as they come and go; the moments at which the
program waits. Output: the runtime's own handles, or a `CheckError` in the wrong call.

A launch of a kernel is first run alone, with other values in bytes that should not matter, beside
the backend. Then the backend runs it for good. Changed bytes and outcomes show the errors. A launch
that `passes` lets through runs without trials, or watched by the device (`watch`). Invariants:
- Launches of all threads go one after another here (`_lock`, taken before the runtime's).
- After each launch, and after each error, memory is as the launch itself left it.
"""

# Long because: it is the one place that the runtime consults; each check is in its own file.

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any, NoReturn

import pyopencl as cl

from .. import core
from ..access.arguments import ADDRESS_SPACE
from ..devices import kind as device_kind
from ..devices.driver import CommandQueue, Events, refusals
from ..errors import CheckError, CheckWarning, Finding, UsageError
from ..handle import Handle
from ..host.call_sites import caller, warn_there
from ..host.threads import on_host_task
from ..launch.bases import take_back
from ..launch.commands import HostCommand, KernelCommand, TransferCommand
from ..launch.decision import plain_kernel
from ..launch.foreign_events import comes
from ..launch.waits import wait
from ..memory.array import Array
from ..memory.blocks import Base, Block
from ..records import EVERYTHING, Access, Command, DType, Modes, NamedTuple, Report
from .access import Matters, judged, read, stray_read, stray_write, wrote
from .bands import CheckedBand, parts_of
from .bounds import Bounds
from .case import Argument, Case, PutBack, Trial, first_unwritten, note_written
from .findings import FREED, READ, Findings, Who, finding
from .foreign import Foreign
from .leaks import Sites, leaks
from .memory import GUARD, Interval, Memory, MemoryPart
from .mirrors import Mirrors
from .naming import arguments_of, signature_of, token_of, where, where_of
from .order import Batch
from .passes import Let, Passes
from .patterns import Bytes, kind_of, marked
from .watch import Watch

if TYPE_CHECKING:
    from ..launch.engine import Engine

QUARANTINE_BYTES = 16 << 20
"""Freed memory is used again only after this much more was freed."""

MOST_PASSED = 4096
"""Most writes of launches that were let through, before the mirrors have to take them over."""

ONCE = "map", "unmap"
"""Commands of a queue that do something else the second time."""

THOROUGH = 2
"""The first launches of a kernel, which have a second trial with other values."""

BEHIND = "behind an event that the program has not set yet"


class Checked(NamedTuple):
    """A launch under check."""

    command: Command
    """The command for the first device, whose memory checks look at."""
    own: Command
    """The program's own command for it, which may go to any device."""
    access: Access
    wait_for: Events
    result: object
    after: Sequence[int]

    @property
    def kernel(self) -> KernelCommand | None:
        """Its kernel, without a decision; None: it is no kernel."""
        return plain_kernel(self.command)


class Checker:
    """Checks the launches of a runtime. `Engine.checker` holds it."""

    def __init__(self, engine: Engine, modes: Modes) -> None:
        self.modes = modes
        self.guard = GUARD
        self.memory = Memory(
            CommandQueue(engine.context, engine.device), device_kind(engine.device) == "CPU"
        )
        self.engine = engine
        self.looks = modes.access or modes.uninitialised
        judges = modes.order or (modes.access and not modes.every)
        self._batch = Batch(self, modes.seed, modes.order) if judges else None
        self._foreign = Foreign()
        self._lock = threading.RLock()
        self._inside = 0
        """The thread that is in a launch."""
        self._notes: deque[tuple[Any, ...]] = deque()
        self._quarantine: deque[tuple[int, Block, tuple[int, ...]]] = deque()
        self._quarantined = 0
        self.mirrors = Mirrors(engine, self.memory)
        watch = Watch(engine.context, engine.device, self.memory)
        self._watch = watch if judges and not modes.every else None
        self._passes = Passes(self.memory, modes, self._watch)
        self._bounds = Bounds(engine.context, self.memory, watch, self._run)
        self._task: Access | None = None
        self._taken: tuple[int, str] | None = None
        self._nested: list[Access] = []
        self._seen: Counter[int] = Counter()
        self._kernels: set[int] = set()
        """The kernels of launches that were checked."""
        self._sites = Sites()
        self._arrays: dict[int, str] = {}
        self.unchecked: Counter[str] = Counter()
        self.launches = 0
        self.runs = 0
        self.findings = Findings()
        self._total_s = 0.0
        self._plain_s = 0.0

    # ---- events of the runtime -----------------------------------------------------------------

    def allocated(self, base: Base, dtype: DType) -> None:
        """Note a new array. Called under the runtime's lock."""
        site = caller()
        block = base.block.home
        self._notes.append(("new", base.number, block, base.nbytes, kind_of(dtype), site))
        if self.modes.leaks:
            self._arrays[base.number] = site

    def freed(
        self, number: int, block: Block, users: tuple[int, ...]
    ) -> list[tuple[Block, tuple[int, ...]]]:
        """Note that an array is gone. Return older blocks that may be used again: a launch that
        wrongly uses this array then meets no other array's bytes. Called under the runtime's
        lock."""
        self._notes.append(("gone", number))
        self._arrays.pop(number, None)
        self._quarantine.append((number, block, users))
        self._quarantined += block.size
        released = []
        while self._quarantined > QUARANTINE_BYTES:
            _, old, old_users = self._quarantine.popleft()
            self._quarantined -= old.size
            self._notes.append(("dropped", old.home))
            released.append((old, old_users))
        return released

    def data_taken(self, array: Array) -> None:
        """Note that the program has the address of an array, for commands that no check sees."""
        self.mirrors.shared()
        task = self._task
        if task is None or not on_host_task():
            return
        bases = {span.base for span in (*task.reads, *task.writes)}
        if array.base is not None and array.base.number not in bases:
            self._taken = array.base.number, caller()

    def takes(self, access: Access) -> bool:
        """Tell whether a launch of this thread is checked. Host tasks cannot run alone."""
        if on_host_task():
            self._nested.append(access)
            self.unchecked["launched by a host task"] += 1
            self.mirrors.stale()
            self._spoil()
            return False
        return self._inside != get_ident()

    # ---- launches ------------------------------------------------------------------------------

    def launch(
        self,
        command: Command,
        access: Access,
        wait_for: Events,
        result: object,
        after: Sequence[int],
    ) -> Handle:
        """Do the work of `Engine.launch`, with the checks around it. Whoever waits for what is in
        flight has waited for `after`, too."""
        self._sites.trim(self.engine)
        with self._lock:
            started, plain = perf_counter(), self._plain_s
            self._enter()
            one: Checked | None = None
            try:
                self.launches += 1
                with refusals(f"the checks of launch {self.engine.number + 1} ({command.name})"):
                    self._take_notes()
                    home = self.engine.at_home
                    one = Checked(home(command), command, access, wait_for, result, after)
                    return self._around(one)
            except CheckError:
                self._spoil()
                raise
            except UsageError:  # the launch was refused, and never was
                raise
            except BaseException:  # such as Ctrl-C: nobody knows whether it was launched
                self.mirrors.stale()
                self._spoil()
                raise
            finally:
                self._total_s += perf_counter() - started - (self._plain_s - plain)
                self._inside = 0
                del one  # now, since it may be the last to know something of the program
                self._leave()

    def _enter(self) -> None:
        """Begin to run launches alone. What dies meanwhile waits, since a launch of its finalizer
        would be taken for one of these, and undone with them."""
        core.native.hold_finalizers(True)
        self._inside = get_ident()

    def _leave(self) -> None:
        self._inside = 0
        core.native.hold_finalizers(False)

    def _around(self, one: Checked) -> Handle:
        """Launch with the checks around it: let through or with trials (`Let`), and kept in a batch
        if that is judged later."""
        if reason := self._not_now(one):
            self.unchecked[reason] += 1
            self.mirrors.stale()
            self._spoil()
            return self._plain(one)
        may_join = self._batch is not None and self._makes_room(self._batch, one)
        command, let = self._let(one)
        batch = self._batch_of(one, let)
        if batch is not None:
            batch.before(one.command, one.access, let)
        handle = self._checked(one) if let is Let.NOT else self._let_through(one, command, let)
        if batch is not None and may_join:
            batch.add(handle.number, one.command, one.access, caller(), let)
        if self.modes.leaks:
            self._sites[handle.number] = caller()
        return handle

    def _makes_room(self, batch: Batch, one: Checked) -> bool:
        """Tell whether a launch may join the batch, because it can run again when that ends. The
        batch ends before one that cannot, or that follows foreign events."""
        may_join = self._runs_again(one)
        if one.wait_for or not may_join:
            batch.end()
        return may_join

    def _let(self, one: Checked) -> tuple[Command, Let]:
        """Decide whether a launch is let through, and return the command for that."""
        command, kernel = one.command, one.kernel
        if kernel is None or type(command) is not KernelCommand:
            return command, Let.NOT
        watches = self._batch is not None and self._batch.takes_watched
        return self._passes.lets(command, kernel, one.access, watches)

    def _batch_of(self, one: Checked, let: Let) -> Batch | None:
        """Return the batch that keeps a launch. None: there is none, or it would begin with this
        one, for which it need not be judged."""
        batch, kernel = self._batch, one.kernel
        if batch is None or not batch.empty or let is Let.WATCHED:
            return batch
        is_judged = self.modes.order and (kernel is None or self._passes.judged(kernel))
        return batch if is_judged else None

    def _let_through(self, one: Checked, command: Command, let: Let) -> Handle:
        """Launch without trials. A watched launch has a command of its own."""
        if self.looks:
            self.mirrors.let_through(one.access)
        return self._plain(one, command if let is Let.WATCHED else None)

    def _checked(self, one: Checked) -> Handle:
        """Launch with the checks of its kind."""
        if one.kernel is not None:
            self._kernels.add(token_of(one.kernel))
        if not self.looks:
            return self._plain(one)
        if one.kernel is not None:
            return self._kernel(one, one.kernel)
        if isinstance(one.command, HostCommand):
            return self._host_task(one, one.command)
        return self._transfer(one)

    def _runs_again(self, one: Checked) -> bool:
        """Tell whether a launch can run again when its batch ends. Its bytes have to be known, to
        put them back, and not the program's, which goes on with them meanwhile."""
        command, access, memory = one.command, one.access, self.memory
        if _moves(command, "read"):
            return False
        odd = [span for span in (*access.reads, *access.writes) if span.base <= 0]
        if not odd or isinstance(command, HostCommand):
            return True
        if one.kernel is not None:
            arguments_of(one.kernel, memory)  # this finds foreign ones
            odd = [span for span in odd if span.base not in (ADDRESS_SPACE, EVERYTHING)]
        elif command.name in ONCE:
            return False
        else:
            for value in getattr(command, "given", {}).values():
                if isinstance(value, cl.Buffer):
                    memory.argument(value, "i4")
        return all(memory.place(span) is not None for span in odd)

    def _plain(self, one: Checked, command: Command | None = None) -> Handle:
        """Have the backend run a launch by the program's own command, or by another one."""
        started = perf_counter()
        try:
            return self.engine.launch(
                command or one.own, one.access, one.wait_for, one.result, after=one.after
            )
        finally:
            self._plain_s += perf_counter() - started

    def _settled(self, number: int) -> None:
        """Wait for a launch, and until its writes are where checks read them."""
        started = perf_counter()
        wait(self.engine, number)
        if self.engine.is_several and self.engine.table:
            self.engine.drain()
        self._plain_s += perf_counter() - started

    def _not_now(self, one: Checked) -> str:
        """Return why a launch cannot run alone, or not more than once. '': it can."""
        signature = None if one.kernel is None else signature_of(one.kernel)
        if signature is not None and signature.program_globals:
            return "uses variables of its program, which nobody can put back"
        if one.kernel is not None and self._turns_images(one.kernel, one.access):
            return "reads and writes an image, which nobody can put back"
        engine = self.engine
        if engine.foreign or not all(map(comes, one.wait_for or ())):
            return BEHIND
        if engine.failures.any and engine.failures.reads_poison(one.access) is not None:
            return "poisoned"
        return ""

    def _turns_images(self, kernel: KernelCommand, access: Access) -> bool:
        """Tell whether a kernel reads and writes the same image. If it ran again, it would compute
        something else."""
        images = [given for given in kernel.pointers[1::2] if isinstance(given, cl.Image)]
        if not images:
            return False
        both = {span.base for span in access.reads} & {span.base for span in access.writes}
        known = (core.native.memory_of(one, self.engine.store.reserved) for one in images)
        return any(one is not None and one.span.base in both for one in known)

    def _kernel(self, one: Checked, kernel: KernelCommand) -> Handle:
        """Run trials of a kernel, launch it, and compare."""
        engine, memory, number = self.engine, self.memory, self.engine.number + 1
        command, access = one.command, one.access
        arguments = arguments_of(kernel, memory)
        self._settle_all()
        who = Who(number, kernel.name, caller())
        self._look_at_arguments(who, kernel, arguments)
        reads, writes = memory.read(access), memory.intervals(access.writes)
        if self.modes.access:
            self._look_at_aliases(who, arguments, access)
        case = Case(
            memory, reads, writes, arguments, lambda: self._run(command), signature_of(kernel)
        )
        with (back := PutBack(case.put, case.before if self.modes.access else None)):
            if self.modes.access:
                self.findings.fail_if(self.beyond(case, kernel, command, access, who))
            trials = self._trials(case, kernel)
            back.values = None
        handle = self._plain(one)
        self._settled(handle.number)
        if engine.failures.any and engine.failures.knows(handle.number):
            self.mirrors.stale()
        else:
            self._compare(case, trials, command, access, who)
        return handle

    def _compare(
        self, case: Case, trials: Sequence[Trial], command: Command, access: Access, who: Who
    ) -> None:
        """Compare what a launch has done with its trials. Raise if it touched bytes that it does
        not declare."""
        modes, kernel = self.modes, command if type(command) is KernelCommand else None
        real = Trial(case.before, case.now())
        spot = stray_write(case, (real, *trials)) if modes.access else None
        matters = wrong = None
        with (back := PutBack(case.put, real.out)):
            if spot is None and who.name not in self.findings.unsteady:
                matters = stray_read(case, real, trials, modes.access, modes.uninitialised)
            parts: Sequence[CheckedBand] = ()
            if modes.access and kernel is not None and spot is None and matters is None:
                parts = parts_of(self.engine, kernel, access, self._seen[token_of(kernel)])
                if parts:
                    wrong = self._look_at_bands(case, kernel, parts, who)
            if matters is None and not parts:
                back.values = None
        if modes.uninitialised:
            note_written(case, real, trials)
        self.mirrors.checked(case, real, everything=spot is not None)
        if spot is not None:
            wrong = wrote(case, spot, who, access)
        self.findings.fail_if(wrong)
        if matters is not None:
            self._tell(case, matters, who, access)
        elif kernel is not None:
            self.right(kernel)

    def beyond(
        self, case: Case, kernel: KernelCommand, command: Command, access: Access, who: Who
    ) -> Finding | None:
        """Return the error of a launch that leaves its arrays. It runs within bounds, so that
        nothing else changes. Memory is put back if there is one, else left as it comes."""
        inside = self._passes.stays_inside(kernel, access)
        if inside and not self._bounds.names_constants(kernel):
            return None
        found = self._bounds.wrong(case, command, access, who)
        if found is not None:
            case.put(case.before)
        return found

    def _look_at_bands(
        self, whole: Case, command: KernelCommand, parts: Sequence[CheckedBand], who: Who
    ) -> Finding | None:
        """Run bands of a launch alone, from the memory before it, and compare each with its access.
        Return the error, if any. Memory is left as it comes."""
        memory = self.memory
        for part in parts:
            touched, begin, own = part.access, part.run, who._replace(part=part.name)
            case = Case(
                memory, memory.read(touched), memory.intervals(touched.writes), whole.arguments,
                partial(self._begin, begin), signature_of(command),
            )  # fmt: skip
            found = judged(case, own, touched).found
            if found is not None:
                return found
        return None

    def right(self, kernel: KernelCommand) -> None:
        """Note that a launch was checked without an error."""
        if kernel.name not in self.findings.unsteady:
            self._passes.right(kernel)

    def strayed(self) -> list[str]:
        """Return kernels of watched launches that touched undeclared bytes. Nothing is in
        flight."""
        return [] if self._watch is None else self._watch.strayed()

    def _trials(self, case: Case, kernel: KernelCommand) -> list[Trial]:
        """Run trials with other values, and restore the memory."""
        several: list[list[Bytes]] = []
        if self.modes.access:
            several.append(case.other())
            token = token_of(kernel)
            if self._seen[token] < THOROUGH:
                several.append(case.turned())
            self._seen[token] += 1
        if self.modes.uninitialised:
            first = case.unwritten(several[0] if several else None)
            several = several or ([first] if first is not None else [])
        trials = []
        with PutBack(case.put, case.before if several else None):
            try:
                for values in several:
                    trials.append(case.trial(values))
            except (cl.Error, ValueError):  # the real launch would be refused, too
                trials = []
        return trials

    def _run(self, command: Command) -> cl.Event:
        """Start the command again, with none of the backend's in flight; return its event."""
        return self._begin(lambda queue: command.enqueue(queue, None))

    def _begin(self, run: Callable[[cl.CommandQueue], cl.Event]) -> cl.Event:
        self.runs += 1
        with self.engine.lock:
            return run(self.memory.queue)

    def _host_task(self, one: Checked, command: HostCommand) -> Handle:
        """Launch a host task, and look at what it has changed."""
        engine, memory, access = self.engine, self.memory, one.access
        self._settle_all()
        who = Who(engine.number + 1, command.name, command.site, True)
        reads, writes = memory.intervals(access.reads), memory.intervals(access.writes)
        self._warn_of_unwritten(who, reads)
        self._task, self._taken, self._nested = access, None, []
        try:
            handle = self._plain(one)
            self._settled(handle.number)
        finally:
            self._task = None
        if len(engine.table):
            engine.drain()
        for nested in self._nested:
            writes = [*writes, *memory.intervals(nested.writes)]
        for interval in writes:
            interval.region.unwritten[interval.low : interval.high] = False
        case = Case(memory, reads, writes, (), _never)
        case.windows = [Interval(one, 0, one.top) for one in memory.regions]
        real = Trial([one.region.mirror for one in case.windows], case.now())
        case.in_writes = case.spots(writes)
        spot = stray_write(case, (real,)) if self.modes.access else None
        self.mirrors.checked(case, real, everything=spot is not None or bool(self._nested))
        if spot is not None:
            self.findings.fail(wrote(case, spot, who, access))
        if self.modes.access:
            self._look_at_task(who)
        return handle

    def _transfer(self, one: Checked) -> Handle:
        """Launch what moves bytes, and note which it writes."""
        command = one.command
        who = Who(self.engine.number + 1, command.name, caller())
        writes = self.memory.intervals(one.access.writes)
        self._warn_of_unwritten(who, self.memory.intervals(one.access.reads))
        for part in writes:
            part.region.unwritten[part.low : part.high] = False
        self.mirrors.transferred(writes)
        if self.modes.access and isinstance(command, TransferCommand) and _moves(command, "write"):
            self._foreign.promise(who, command.source)
        return self._plain(one)

    # ---- moments -------------------------------------------------------------------------------

    def _settle_all(self) -> None:
        """Drain, update the mirrors, and check that no watched launch has left other bytes."""
        if self._batch is not None:
            self._batch.end_if_noted()
        self.mirrors.settle()

    def sync(self) -> None:
        """Note that the program is about to wait, or may assume that a launch has ended."""
        if self._inside == get_ident() or on_host_task():
            return
        with self._lock:
            started = perf_counter()
            self._enter()
            try:
                self._take_notes()
                if self.engine.foreign or self.engine.state:
                    return
                with refusals("the checks of the launches since the last wait"):
                    if self._batch is not None:
                        self._batch.end()
                        self._passes.batch_ended()
                    if self.modes.access:
                        self._look_back()
            finally:
                self._total_s += perf_counter() - started
                self._leave()

    def _spoil(self) -> None:
        if self._batch is not None:
            self._batch.spoil()

    def _look_back(self) -> None:
        """Check what the program did to memory that launches since the last wait may use."""
        self.mirrors.settle(may_wait=MOST_PASSED)
        self._foreign.waited()
        released, broken = self._foreign.released(), self._foreign.broken()
        self.memory.forget_released()
        self.findings.fail_if(released)
        self.findings.fail_if(broken)

    def close(self) -> None:
        """Note that the runtime is about to close, with nothing in flight."""
        if self.modes.leaks:
            text = leaks(self.engine, self._arrays, self._sites)
            if text:
                warn_there(text, CheckWarning)

    def report(self) -> Report:
        """Return the work and cost of the checks, in plain values."""
        return {
            "modes": str(self.modes),
            "launches": self.launches,
            "passed": self._passes.passed,
            "watched": self._passes.watched,
            "kernels": len(self._kernels),
            "runs": self.runs,
            "orders": self._batch.orders if self._batch is not None else 0,
            "unchecked": dict(self.unchecked),
            "unsteady": sorted(self.findings.unsteady),
            "found": self.findings.count,
            "said": list(self.findings.said),
            "seconds": self._total_s,
        }

    def _take_notes(self) -> None:
        memory, engine = self.memory, self.engine
        if engine.table.has_returned:
            with engine.lock:
                take_back(engine)
        while self._notes:
            note = self._notes.popleft()
            if note[0] == "new":
                part = memory.allocated(*note[1:])
                if self.looks and not engine.foreign:
                    self._fill(part)
            elif note[0] == "gone":
                self.mirrors.before_freeing()
                if self._batch is not None:
                    self._batch.look_up()
                memory.freed(note[1])
            else:
                memory.dropped(note[1])

    def _fill(self, part: MemoryPart) -> None:
        """Fill a new array with small, conspicuous values instead of an older array's bytes."""
        if self.engine.table:
            self.engine.drain()
        region, low, high = part.region, part.low, part.end
        values = marked(region.mirror[low:high], part.kind)
        region.store(low, values)
        region.mirror[low:high] = values
        region.changed(low, high)
        if self._batch is not None:
            self._batch.filled(region, low, values)

    # ---- findings ------------------------------------------------------------------------------

    def _tell(self, case: Case, matters: Matters, who: Who, access: Access) -> None:
        if matters.spot is None:
            self.findings.warn_of_unsteady(who, case.may_differ)
        elif matters.unwritten:
            byte = where_of(case, matters.spot)
            self.findings.warn_of_unwritten(who, f"{who}: its outcome depends on {byte.text}")
        else:
            self.findings.fail(read(case, matters.spot, who, access))

    def _warn_of_unwritten(self, who: Who, reads: Sequence[Interval]) -> None:
        if not self.modes.uninitialised:
            return
        found = first_unwritten(reads)
        if found is not None:
            text = f"launch {who.launch} ({who.name}), at {who.site}: reads"
            self.findings.warn_of_unwritten(who, f"{text} {where((), *found).text}")

    def _look_at_arguments(
        self, who: Who, kernel: KernelCommand, arguments: Sequence[Argument]
    ) -> None:
        """Check that no argument is memory that was freed."""
        if not self.modes.access:
            return
        pointers = dict(zip(kernel.pointers[::2], kernel.pointers[1::2], strict=True))
        for one in arguments:
            part = one.region.part_at(one.offset)
            if part is None or not part.live:
                byte = where([one], one.region, one.offset)
                text = f"{who}: argument {one.number} is {byte.text}"
                self.findings.fail(finding(FREED, who, byte, text))
            self._foreign.hold(one.region, pointers[one.number], who, one)

    def _look_at_aliases(self, who: Who, arguments: Sequence[Argument], access: Access) -> None:
        """Check that no other launch uses the same bytes by another buffer. Bytes that are named by
        their address are in all buffers there, so only those among the arguments count."""
        own = {one.region for one in arguments}
        used = [
            (one, writes)
            for spans, writes in ((access.reads, False), (access.writes, True))
            for one in self.memory.intervals(spans)
            if one.region in own
        ]
        self.findings.fail_if(self._foreign.meet(who, arguments, used))

    def _look_at_task(self, who: Who) -> None:
        if self._taken is not None:
            number, site = self._taken
            part = self.memory.parts.get(number)
            made = part.site if part is not None else "?"
            self.findings.fail(finding(
                READ, who, None,
                f"{who}: takes .data (at {site}) of the array made at {made}, which is neither in "
                "its reads= nor in its writes=",
            ))  # fmt: skip
        self.findings.fail_if(self._foreign.broken(who))


def _never() -> NoReturn:
    raise AssertionError("host tasks are run once")


def _moves(command: Command, name: str) -> bool:
    """Tell whether a command is a transfer of this kind."""
    return isinstance(command, TransferCommand) and command.name == name
