"""This project's scheduler on the device (`docs/design/scheduler.md`) as a policy.

Input: a trace and a machine. Output: runs. The program records launches into an epoch. It is sent
when it is full, when the program waits, when a poll finds the device idle, or before a launch for
another scheduler. It is also sent after a millisecond while the device has less than two.
Transfers, host tasks and kernels without a scheduler go alone, as epochs and lanes wait for each
other.

A kernel is cut anew into tiles for the groups of the scheduler. These are fewer than its own
groups, and run by fewer groups than the device has room for. A kernel whose groups are whole keeps
them, and has a scheduler with groups of that size. A group without a ready task may leave for the
rest of the launch; later tasks then have one unit less. A launch whose groups have mostly left ends
half-way for another one, once for a short epoch.

Invariant: as of `batches`. A tile is whole groups, and takes no less time than they do, so the
bounds of a trace hold here too.
"""

from __future__ import annotations

from acs_cl.emu.batches import Batches
from acs_cl.emu.cost import Costs, Need
from acs_cl.emu.engine import HOST
from acs_cl.emu.spec import GpuSpec, Machine, SchedulerSpec
from acs_cl.emu.trace import KERNEL, Entry, Trace

LANE, CUT = -1, 0
"""Routes: a lane; a task whose groups are cut anew. Others: a scheduler with their group size."""


class OnDevice(Batches):
    """Epochs of this project's scheduler."""

    name = "on_device"
    batch_name = "epoch"

    def __init__(self, trace: Trace, machine: Machine, log: bool = False) -> None:
        self.scheduler = machine.scheduler
        super().__init__(cut(trace, machine), machine, log)
        self.edge_ns = self.scheduler.queue_ns
        self.node_ns = self.scheduler.task_ns
        self.batch_ns = self.scheduler.epoch_ns
        self.links = _links(self.trace, self.scheduler)
        self.homes = _homes(trace, self.trace, machine)
        self.home = LANE
        """Route of the last launch."""
        self.look = self.scheduler.first_look
        self.ahead = 0
        """Tasks sent since the program had to wait."""
        self.opened_ns = 0
        self.again = 0
        """Launches of the scheduler that are still to come in the epoch."""
        self.groups = 0
        """Groups in a launch."""
        self.epochs = 0
        """Epochs that have come to the device."""
        self.is_epoch = False
        """Whether an epoch is on the device."""
        self.there_ns = 0
        """When all threads have come to the epoch: they wake up as late as for any kernel."""
        self.keeping = 0
        """Groups that have ended a task and are about to go on with another."""
        self.dispatched = False
        self.at_once = False
        """The next epoch was there when the previous one ended."""
        self.holding = 0
        """Epochs whose sending blocks the program."""
        if self.scheduler.leaves:
            self.gpu.on_free = self._freed

    def device(self) -> GpuSpec:
        """Return the device with the scheduler's groups resident instead of the kernels'."""
        gpu = self.machine.gpu
        groups, threads = _resident(gpu, self.scheduler)
        return gpu._replace(threads=groups * threads) if threads else gpu

    def wait_ns(self) -> int:
        return self.scheduler.wait_ns

    # ---- epochs ----------------------------------------------------------------------------------

    def node_cost(self, entry: Entry) -> int:
        before, self.home = self.home, self._home(entry)
        if self.open and self.home != before:
            self.hand_over()
        if self.home == LANE:
            return self.book("launch", self.host.launch_ns)
        return self.book("record", self.scheduler.record_ns)

    def _home(self, entry: Entry) -> int:
        return self.homes[entry.number - 1]

    def room(self) -> bool:
        return not self.holding

    def hand_over(self) -> None:
        self.holding += self.scheduler.holds and self._home(self.open[-1]) != LANE
        super().hand_over()

    def over(self) -> None:
        self.at_once = bool(self.coming)
        if self.holding and self.is_epoch:
            self.engine.at(self.engine.now + self.wait_ns(), HOST, self._let_go, None)

    def _let_go(self, _: None) -> None:
        self.holding -= 1
        self.program.poke()

    def handing_ns(self, batch: list[Entry]) -> int:
        """Return no time for lanes: that was paid as a launch."""
        if self._home(batch[-1]) == LANE:
            return 0
        return self.batch_ns + sum(one.groups for one in batch) * self.scheduler.tile_ps // 1000

    def launched(self, entry: Entry) -> None:
        if not self.open:
            self.opened_ns = self.engine.now
        super().launched(entry)
        if self._home(entry) == LANE or self._is_time():
            self.hand_over()

    def _is_time(self) -> bool:
        """Tell whether the open epoch is sent now. If a poll finds the device busy, the next comes
        later."""
        tasks, scheduler = len(self.open), self.scheduler
        on_the_way = len(self.coming) + self.sending + bool(self.left)
        if tasks >= scheduler.epoch_tasks:
            return True
        if tasks >= self.look:
            if not on_the_way:
                self.ahead += tasks
                self.look = min(max(scheduler.first_look, self.ahead), scheduler.epoch_tasks)
                return True
            self.look = tasks + scheduler.first_look
        return self.engine.now - self.opened_ns > scheduler.open_ns and on_the_way < 2

    def paused(self) -> None:
        super().paused()
        self.look, self.ahead = self.scheduler.first_look, 0

    def dispatch(self, number: int, delay_ns: int) -> None:
        """Begin a task that is handed over in the groups that ran the previous one."""
        self.dispatched = True
        if delay_ns and self.links[number]:
            self.begin_in(self.links[number], number)
        else:
            super().dispatch(number, delay_ns)

    # ---- groups that leave -----------------------------------------------------------------------

    def begins(self, batch: list[Entry]) -> None:
        units = self.machine.gpu.units
        self.groups = min(self.scheduler.launched * units, _width(batch))
        self.is_epoch = self._home(batch[0]) != LANE
        if self.is_epoch:
            behind = self.scheduler.behind_ns if self.at_once else 0
            self.dispatcher.serve(behind + self.scheduler.begin_ns * self.groups)
        self.at_once = False
        if not self.scheduler.leaves:
            return
        self.epochs += 1
        self.keeping = 0
        self.gpu.open()
        takes = sum(self.gpu.costs.need(one).ns * one.groups for one in batch if one.groups)
        slices = takes // max(1, self.scheduler.slice_ns * units)
        self.again = 1 + slices if self.groups > 1 else 0
        self.there_ns = self.engine.now + self.host.edge_ns
        self.engine.at(self.there_ns, HOST, self._look_around, self.epochs)

    def ended(self, number: int) -> None:
        """Let the last group of a task go on with a task that became ready by its end, if any."""
        epoch, self.dispatched = self.epochs, False
        super().ended(number)
        if self.scheduler.leaves and self.dispatched and self.epochs == epoch:
            self.keeping += 1
            soon = self.engine.now + max(self.edge_ns, self.scheduler.fused_ns) + self.node_ns
            self.engine.at(soon, HOST, self._has_gone_on, epoch)

    def _has_gone_on(self, epoch: int) -> None:
        if epoch == self.epochs:
            self.keeping -= 1
            self._look_around(epoch)

    def _freed(self) -> None:
        """Note that a group has run a tile. If many tasks wait and groups are missing, it leaves,
        and all come with the next launch."""
        if self.again and self.gpu.closed and self.gpu.waiting >= self.groups:
            self.again -= 1
            self.gpu.open()
        self.engine.at(self.engine.now, HOST, self._look_around, self.epochs)

    def _look_around(self, epoch: int) -> None:
        """Let groups without a ready task leave, and later ones too, because a thread is gone."""
        gpu = self.gpu
        if epoch != self.epochs or not self.left or gpu.waiting or self.engine.now < self.there_ns:
            return
        idle = gpu.free_units()
        for unit in idle[: len(idle) - self.keeping]:
            if len(gpu.closed) + 1 < gpu.spec.units:
                gpu.close(unit)


def cut(trace: Trace, machine: Machine) -> Trace:
    """Return the trace with kernels cut into tiles for the groups of the scheduler."""
    scheduler, gpu = machine.scheduler, machine.gpu
    if not scheduler.group:
        return trace
    costs = Costs(gpu)
    entries = [
        _tiled(entry, costs.need(entry), gpu, scheduler) if entry.kind == KERNEL else entry
        for entry in trace.entries
    ]
    return trace._replace(entries=entries)


def _tiled(entry: Entry, need: Need, gpu: GpuSpec, scheduler: SchedulerSpec) -> Entry:
    """Return a kernel in the form its scheduler runs, or on its lane."""
    groups, threads = _resident(gpu, scheduler)
    home, room = home_of(entry), groups * threads
    if home == CUT:
        most = max(1, scheduler.most_tiles * scheduler.launched * gpu.units)
        least = max(scheduler.least_items, -(-entry.groups * entry.items // most), entry.items)
        each, items = min(entry.groups, -(-least // entry.items)), threads
    else:
        each, items, groups = 1, min(entry.items, room), max(1, room // entry.items)
    tiles = -(-entry.groups // each)
    slower = scheduler.slower_full if tiles > groups * gpu.units else scheduler.slower_few
    ns = need.ns * -(-each * groups // need.fit) * (1000 if home == LANE else max(1000, slower))
    return entry._replace(
        groups=tiles, items=items, registers=0, local_bytes=0, bytes=each * entry.bytes,
        group_ns=-(-ns // 1000), total_ns=0, flops=0, steps=0, rounds=0,
    )  # fmt: skip


def home_of(entry: Entry) -> int:
    """Return the scheduler that runs it, by the size of its groups."""
    if entry.kind != KERNEL or entry.on_lane:
        return LANE
    return entry.items if entry.whole_groups or entry.local_bytes else CUT


def _homes(trace: Trace, tiled: Trace, machine: Machine) -> list[int]:
    """Return the routes of launches with these tiles, if the program has done the same before. On a
    GPU a kernel that may be cut anywhere, and does not fill the device, joins kernels whose groups
    are whole."""
    homes = [home_of(entry) for entry in trace.entries]
    if machine.scheduler.leaves:
        return homes
    groups, _ = _resident(machine.gpu, machine.scheduler)
    along = next((home for home in reversed(homes) if home > CUT), CUT)
    for at, entry in enumerate(tiled.entries):
        if homes[at] > CUT:
            along = homes[at]
        elif homes[at] == CUT and 2 * entry.groups <= groups * machine.gpu.units:
            homes[at] = along
        elif homes[at] == CUT:
            along = CUT
    return homes


def _resident(gpu: GpuSpec, scheduler: SchedulerSpec) -> tuple[int, int]:
    """Return groups of the scheduler on a unit, and threads of each. 0: kernels are not cut."""
    groups = max(1, min(gpu.groups, scheduler.groups, gpu.threads // gpu.warp))
    threads = min(scheduler.group, gpu.threads // groups)
    return groups, threads and max(1, threads // gpu.warp) * gpu.warp


def _links(trace: Trace, scheduler: SchedulerSpec) -> list[int]:
    """Return the time of a direct hand-over for each launch with one upstream that has no other
    successor. 0: there is none."""
    followers = [0] * (len(trace.entries) + 1)
    for entry in trace.entries:
        for other in entry.upstream:
            followers[other] += 1
    links = [0] * (len(trace.entries) + 1)
    for entry in trace.entries:
        if len(entry.upstream) == 1 and followers[entry.upstream[0]] == 1:
            before = trace.entries[entry.upstream[0] - 1].groups
            if before == entry.groups == 1:
                links[entry.number] = scheduler.fused_ns
            elif before > 1 and entry.groups > 1:
                links[entry.number] = scheduler.gang_ns
    return links


def _width(batch: list[Entry]) -> int:
    """Return the largest number of tiles in a level."""
    levels: dict[int, int] = {}
    tiles: dict[int, int] = {}
    for entry in batch:
        level = 1 + max((levels.get(other, 0) for other in entry.upstream), default=0)
        levels[entry.number] = level
        tiles[level] = tiles.get(level, 0) + entry.groups
    return max(tiles.values(), default=0)
