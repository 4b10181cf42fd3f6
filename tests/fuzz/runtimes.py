"""Every way in which random programs run, and the runtimes for them, made once in a process.

In: a device. Out: `Ways`, which runs a program of a seed in the configuration of that seed, beside
NumPy. All runtimes share the device's context, and what is built for one of them is built for all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pyopencl as cl

import acs_cl as acs
from acs_cl import devices
from acs_cl.devices import contexts
from acs_cl.devices.facts import facts_of
from fuzz.kernels import (
    GROUP,
    HEADERS,
    IMAGES,
    IN_GROUPS,
    INCLUDING,
    KEEPING,
    SOURCE,
    TOGETHER,
)
from fuzz.machine import AcsMachine
from fuzz.oracle import Abilities, NumpyMachine
from fuzz.steps import Step, compare, program_of, run
from fuzz.threads import in_threads

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "serial": {"backend": "serial"},
    "serial, ready first": {"backend": "serial", "issue": "ready_first"},
    "out of order": {"backend": "out_of_order"},
    "out of order, ready first": {"backend": "out_of_order", "issue": "ready_first"},
    "out of order, window 2": {"backend": "out_of_order", "window": 2},
    "lanes": {"backend": "lanes"},
    "lanes, ready first": {"backend": "lanes", "issue": "ready_first"},
    "3 lanes, window 5": {"backend": "lanes", "lanes": 3, "window": 5},
    "serial, buffers": {"backend": "serial", "memory": "buffers"},
    "lanes, buffers": {"backend": "lanes", "memory": "buffers"},
    "out of order, backlog 4": {"backend": "out_of_order", "backlog": 4},
    "lanes, trace": {"backend": "lanes", "trace": True},
    "device": {"backend": "device"},
    "device, critical path": {"backend": "device", "order": "critical_path"},
    "device, window 8": {"backend": "device", "window": 8},
    "auto": {"backend": "auto"},
    "emulated": {"backend": "emulated"},
    "checked": {"backend": "serial", "check": "access"},
}  # fmt: skip
ORDER = [name for name in CONFIGURATIONS if name != "checked"] * 3 + ["checked"]
"""Which configuration the program of a seed has, in turns; checks take their time."""
PROGRAMS_KEPT = 4096
"""For all runtimes: each kernel has its versions, which take longer to build than to run."""
THREADED = 10
"""Seeds of which one is several programs at once, in threads on one runtime."""


class _Way(NamedTuple):
    runtime: acs.Runtime
    program: acs.Program
    more: dict[str, acs.Program]


class Outcome(NamedTuple):
    """What was run for a seed."""

    configuration: str
    programs: int
    operations: int


def configuration_of(seed: int) -> str:
    """The configuration of a seed."""
    return ORDER[seed % len(ORDER)]


def keep_programs() -> None:
    """Have the device's context keep what is built for the kernels of random programs."""
    contexts.KEPT = max(contexts.KEPT, PROGRAMS_KEPT)


class Ways:
    """Runtimes of a process."""

    def __init__(self, device: cl.Device | None = None) -> None:
        self.device = devices.choose(device)
        keep_programs()
        self._made: dict[str, _Way] = {}
        self._has = Abilities(bool(self.device.image_support), _has_variables(self.device), True)

    def close(self) -> None:
        """All of them."""
        for way in self._made.values():
            way.runtime.close()
        self._made.clear()

    def one(self, seed: int) -> Outcome:
        """Run what a seed stands for; an `AssertionError` says what is wrong."""
        name = configuration_of(seed)
        way = self._way(name)
        # Views inside buffers take a rewritten kernel, which cannot share its program's variables.
        has = self._has._replace(
            gates="backlog" not in CONFIGURATIONS[name],
            variables=self._has.variables and CONFIGURATIONS[name].get("memory") != "buffers",
        )
        if seed % THREADED:
            programs = [program_of(f"{seed}")]
            self._run(way, programs[0], has)
        else:
            programs = [program_of(f"{seed} {index}") for index in range(2 + seed // THREADED % 2)]
            alone = has._replace(variables=False)
            in_threads(lambda index: self._run(way, programs[index], alone), len(programs))
        if name == "checked":
            found = way.runtime.stats()["check"]
            assert not found["found"], f"a check accuses: {found}"
        return Outcome(name, len(programs), sum(map(len, programs)))

    def _way(self, name: str) -> _Way:
        made = self._made.get(name)
        if made is None:
            runtime = acs.Runtime(self.device, **CONFIGURATIONS[name])
            program = runtime.build(SOURCE)
            more = {"includes": runtime.build(INCLUDING, ["-I", HEADERS])}
            if self._has.images:
                more["images"] = runtime.build(IMAGES)
            if self._has.variables:
                more["variables"] = runtime.build(KEEPING, ["-cl-std=CL3.0"])
            there = TOGETHER[list(CONFIGURATIONS).index(name) % len(TOGETHER)]
            runtime.prebuild(*(
                (getattr(program, kernel), (GROUP,)) if kernel in IN_GROUPS
                else getattr(program, kernel) for kernel in there
            ))  # fmt: skip
            made = self._made[name] = _Way(runtime, program, more)
        return made

    @staticmethod
    def _run(way: _Way, program: list[Step], has: Abilities) -> None:
        expected = NumpyMachine(abilities=has)
        run(program, expected)
        got = AcsMachine(way.runtime, way.program, abilities=has, more=way.more)
        try:
            run(program, got)
        finally:
            got.let_go()
        compare(program, expected, got)


def _has_variables(device: cl.Device) -> bool:
    """Whether programs may have variables of their own."""
    return "__opencl_c_program_scope_global_variables" in (facts_of(device).features or ())
