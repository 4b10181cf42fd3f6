"""The placer: it chooses devices for the launches of a runtime, one by one or for a graph.

Input: launches, the model, and what is on each device. Output: devices, with reasons. The policy
decides where more than one device is possible; see `policies`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from .. import core
from ..errors import DeviceError
from ..launch.commands import TransferCommand
from ..memory.blocks import Store
from ..records import Access
from . import policies
from .backend import Several
from .copies_at_once import Copier
from .device_parts import LEAST_US, DevicePart
from .kernel_times import Times
from .known_launches import EACH_TEXT, Known, part_text
from .links import measured
from .model import Model
from .placed_runs import Chosen
from .policies import ASSUMED, Links, Policy, State
from .step_plans import Trial

AT_HOME = "its data is there"


class Placer:
    """Chooses devices by the policy called `name`."""

    def __init__(
        self,
        name: str,
        model: Model,
        times: Times,
        links: Links,
        stores: Sequence[Store],
        backend: Several,
        table: core.native.Table,
        copier: Copier,
    ) -> None:
        self.name = name
        self.policy = policies.policy(name)
        self._model, self._times, self._links = model, times, links
        self._stores, self._backend, self._table = stores, backend, table
        self._copier = copier
        self._knows_links = ASSUMED not in (
            link for i, row in enumerate(links) for j, link in enumerate(row) if i != j
        )

    def ask_links(self) -> None:
        """Measure the links before they matter for the first time."""
        if self._knows_links:
            return
        self._knows_links = True
        with suppress(DeviceError):  # the driver refuses memory for it, or a copy
            for (source, target), link in measured(self._copier, self._stores).items():
                self._links[source][target] = link

    def place(self, known: Known, now_us: float) -> tuple[int, str]:
        """Choose the device of the next launch, and say why."""
        times = self._times.of(known.key)
        if not known.pinned and any(took is not None and took >= LEAST_US for took in times):
            self.ask_links()
        return self._place(known, times, self._model, self._states, now_us, self.policy)

    def _place(
        self,
        known: Known,
        times: tuple[float | None, ...],
        model: Model,
        states: Callable[[], Sequence[State]],
        now_us: float,
        policy: Policy,
    ) -> tuple[int, str]:
        if known.pinned:
            return 0, known.pinned
        command, access = known.command, known.access
        if isinstance(command, TransferCommand) and not access.reads:
            return self._place_of_write(access, model, states())
        if self._stays_short(times[0], known, model):
            return 0, AT_HOME
        task = model.task(known.spans, times)
        if isinstance(command, TransferCommand):
            return policies.at_home(task, states()), AT_HOME
        return policy(task, states(), self._links, now_us), f"placed by {self.name}"

    def _stays_short(self, took_us: float | None, known: Known, model: Model) -> bool:
        """Whether a launch is known to be short, and the first device has all it needs: what
        `min_finish` would say, without asking it."""
        if took_us is None or took_us >= policies.STAYS_US:
            return False
        return self.policy is policies.min_finish and model.coherence.is_there(known.spans, 0)

    def _place_of_write(
        self, access: Access, model: Model, states: Sequence[State]
    ) -> tuple[int, str]:
        """Choose the device of values from the host: where the array is, or with most room."""
        holders = [model.coherence.everywhere(span) for span in access.writes]
        for device in range(len(states)):
            if holders and all(mask >> device & 1 for mask in holders):
                return device, AT_HOME
        if self._table.usable:
            return 0, "short launches that use it will be there"
        least = min(range(len(states)), key=lambda device: (states[device].held, device))
        return least, "it has the fewest bytes"

    def _states(self) -> list[State]:
        return [
            State(free, backend.in_flight, store.in_use_bytes)
            for free, backend, store in zip(
                self._model.clock.free_us, self._backend.backends, self._stores, strict=True
            )
        ]

    def tried(
        self,
        launches: Sequence[Known],
        parts: Mapping[int, Sequence[DevicePart]],
        is_at_home: bool = False,
    ) -> Trial:
        """Place the launches of a graph or a step one after another, those with `parts` spread.
        Where the parts are none, each device makes the whole launch. This is done twice: the second
        pass counts, because it finds the data where the first one left it. `is_at_home`: launches
        that are not short run where their data is."""
        links, many = self._links, len(self._stores)
        policy = policies.min_finish_at_home if is_at_home else self.policy
        model = Model(many, self._model.coherence.copy())
        held = [store.in_use_bytes for store in self._stores]
        chosen, active, ends_us, copies = list[Chosen](), [0] * many, list[float](), 0

        def states() -> list[State]:
            return list(map(State, model.clock.free_us, active, held))

        for _ in range(2):
            chosen, active[:], copies = [], [0] * many, 0
            model.clock = core.native.Clock(many)
            for turn, known in enumerate(launches):
                whole_us = self._times.slowest_us(known.key) or 0.0
                on_each = turn in parts and not parts[turn]
                if on_each:
                    some = [
                        Chosen(turn, known.command, known.access, device, EACH_TEXT, whole_us)
                        for device in range(many)
                    ]
                elif cut := parts.get(turn, ()):
                    some = [
                        Chosen(
                            turn, *part[:2], device, part_text(device, len(cut)),
                            self._part_us(part, whole_us / len(cut)),
                        )
                        for device, part in enumerate(cut)
                    ]  # fmt: skip
                else:
                    times = self._times.of(known.key)
                    found = self._place(known, times, model, states, 0.0, policy)
                    some = [Chosen(turn, known.command, known.access, *found, whole_us)]
                for launch in some:
                    active[launch.device] += 1
                copies += model.brings(
                    [(one.command, one.access, one.device, one.took_us) for one in some],
                    links, on_each,
                )  # fmt: skip
                chosen += some
            ends_us.append(max(model.clock.free_us))
        return Trial(chosen, copies, *ends_us)

    def _part_us(self, part: DevicePart, share_us: float) -> float:
        """Return how long a part takes: its share, until it was timed. A launch that does not fill
        a device takes as long in parts."""
        return self._times.slowest_us(part.command.key) or share_us
