"""Costs: what launches ask of a device, as far as their bytes, bodies and sizes tell.

Input: recorded launches with the time that each takes alone. Output: a `Profile`. Whether a launch
computes or waits for memory follows from its bytes, the operations in its body, and the device's
own rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import pyopencl as cl

from ..devices import kind
from ..devices.driver import Origin
from ..devices.facts import CannotParse, split_options
from ..devices.probe.balance import Balance
from ..launch.commands import KernelCommand
from ..observe.commands import sizes_of
from ..ranges import merged
from ..records import EVERYTHING, Access, Command, NamedTuple, Pair
from ..scheduler.orders import Work

if TYPE_CHECKING:
    from ..opencl_c.modes.bodies import Function

ITEMS_OF_A_UNIT, GROUPS_OF_A_UNIT = 2048, 32
"""Work-items and groups that fit on a compute unit of a GPU. OpenCL does not tell these."""

Functions = Mapping[int, "Function"]


class Cost(NamedTuple):
    """What one launch asks of a device. Times are the device's. Zero: unknown."""

    name: str
    us: float
    groups: int
    items: int
    nbytes: int
    """How many different bytes it touches."""
    operations: int
    """Arithmetic of all its work-items, estimated."""
    local_bytes: int
    """Of a group, as the driver says."""
    private_bytes: int
    """Of a work-item, outside of registers, as the driver says."""
    demand: float
    """Share of the device that its groups take."""
    is_memory_bound: bool | None

    @property
    def work(self) -> Work:
        """Return the part that an order sees."""
        return Work(self.us, self.demand, self.is_memory_bound)


class Profile:
    """Holds the costs of the launches of a graph, in program order.

    `print(profile)` is a table, with a row for each kernel and size.
    """

    def __init__(self, costs: Sequence[Cost], rates: Balance) -> None:
        self._costs = costs
        self.rates = rates

    def __len__(self) -> int:
        return len(self._costs)

    def __iter__(self) -> Iterator[Cost]:
        return iter(self._costs)

    def __getitem__(self, at: int) -> Cost:
        return self._costs[at]

    def __repr__(self) -> str:
        return f"<acs_cl profile, launches: {len(self)}>"

    def __str__(self) -> str:
        """Return a table of the different costs."""
        head = f"{'kernel':<24} {'times':>5} {'us':>9} {'groups':>7} {'of':>5} {'bytes':>12}"
        lines = [f"{head} {'operations':>13} {'demand':>7}  class"]
        for one in dict.fromkeys(self._costs):
            times = sum(other == one for other in self._costs)
            what = {True: "memory", False: "compute", None: "unknown"}[one.is_memory_bound]
            lines.append(
                f"{one.name[:24]:<24} {times:>5} {one.us:>9.1f} {one.groups:>7} {one.items:>5} "
                f"{one.nbytes:>12,} {one.operations:>13,} {one.demand:>7.2f}  {what}"
            )
        rates = self.rates
        lines.append(
            f"the device does {rates.operations_per_us:,.0f} operations and moves "
            f"{rates.bytes_per_us:,.0f} bytes in a microsecond, at best"
        )
        return "\n".join(lines)


def bytes_of(access: Access) -> int:
    spans = merged([*access.reads, *access.writes])
    return sum(one.nbytes for one in spans if one.base != EVERYTHING)


def profile_of(
    device: cl.Device, launches: Sequence[Pair], times: Sequence[float], rates: Balance
) -> Profile:
    bodies: dict[Origin, Functions | None] = {}
    costs = [
        _cost(device, command, access, us, rates, bodies)
        for (command, access), us in zip(launches, times, strict=True)
    ]
    return Profile(costs, rates)


def _cost(
    device: cl.Device,
    command: Command,
    access: Access,
    us: float,
    rates: Balance,
    bodies: dict[Origin, Functions | None],
) -> Cost:
    groups, items = sizes_of(command)
    nbytes = bytes_of(access)
    if type(command) is not KernelCommand:
        return Cost(command.name, us, groups, items, nbytes, 0, 0, 0, 0.0, True)
    all_items = prod(command.global_size)
    asked = cl.kernel_work_group_info
    local, private = (
        int(command.kernel.get_work_group_info(what, device))
        for what in (asked.LOCAL_MEM_SIZE, asked.PRIVATE_MEM_SIZE)
    )
    each = _operations(device, command, bodies)
    bound = None
    if each is not None and nbytes:
        bound = nbytes / rates.bytes_per_us > each * all_items / rates.operations_per_us
    demand = (groups or 1) / (device.max_compute_units * _fitting(device, items or 1, local))
    return Cost(
        command.name, us, groups or 1, items or all_items, nbytes, (each or 0) * all_items,
        local, private, demand, bound,
    )  # fmt: skip


def _fitting(device: cl.Device, items: int, local_bytes: int) -> int:
    """Return how many groups fit on a compute unit."""
    if kind(device) == "CPU":
        return 1
    by_local = int(device.local_mem_size) // local_bytes if local_bytes else GROUPS_OF_A_UNIT
    return max(1, min(GROUPS_OF_A_UNIT, ITEMS_OF_A_UNIT // items, by_local))


def _operations(
    device: cl.Device, command: KernelCommand, bodies: dict[Origin, Functions | None]
) -> int | None:
    """Count the operations of one work-item. None: the body is not known."""
    from ..opencl_c.modes.operations import Sizes, operations

    origin: Origin | None = getattr(command.kernel, "origin", None)
    if origin is None:
        return None
    if origin not in bodies:
        bodies[origin] = _functions(device, *origin)
    functions = bodies[origin]
    if functions is None:
        return None
    parameters = next(iter(functions.values())).parameters
    values = dict(zip(command.values[::2], map(bytes, command.values[1::2]), strict=True))
    scalars = {
        at: int.from_bytes(values[at], "little", signed=one.number > 0)
        for at, one in enumerate(parameters)
        if one.number and at in values
    }
    group = command.local_size or (1,) * len(command.global_size)
    return operations(functions, scalars, Sizes(command.global_size, group))


def _functions(
    device: cl.Device, source: str, options: tuple[str, ...], name: str
) -> Functions | None:
    from ..opencl_c.modes.bodies import analyse
    from ..opencl_c.parse import clang
    from ..opencl_c.parse.nodes import TOO_DEEP

    try:
        unit = clang.parse(source, split_options(options), device)
        return analyse(unit, unit.kernels[name]).functions
    except (CannotParse, KeyError, *TOO_DEEP):
        return None
