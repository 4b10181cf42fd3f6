"""The policies by name, as text: `acs_hw(N=32, M=64)`.

Input: a name with numbers in brackets, a trace, a machine. Output: an outcome, or the bounds.

Invariant: a text names exactly one run; a number that is left out is the paper's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from acs_cl.emu.batches import CudaGraph, CudaReplay
from acs_cl.emu.cost import critical_path_ns, work_ns
from acs_cl.emu.in_driver import Ideal, Serial, Streams
from acs_cl.emu.model import Model, Outcome
from acs_cl.emu.on_device import OnDevice
from acs_cl.emu.spec import Machine
from acs_cl.emu.trace import Trace, resolved
from acs_cl.emu.windows import AcsHw, AcsSw
from acs_cl.errors import UsageError


class Policy(NamedTuple):
    """How to make a run, its numbers with their defaults, and a description."""

    make: Callable[..., Model]
    numbers: dict[str, tuple[str, int]]
    """Argument and default of each number, by its name in the text."""
    help: str


# N = 32 is the paper's; it leaves threads and M open (docs/design/emulator.md).
POLICIES = {
    "serial": Policy(Serial, {}, "one in-order stream"),
    "streams": Policy(Streams, {"S": ("streams", 8)}, "S streams, all edges known, events"),
    "cuda_graph": Policy(CudaGraph, {}, "a CUDA Graph, built and run once"),
    "cuda_replay": Policy(CudaReplay, {}, "a CUDA Graph that is there already"),
    "acs_sw": Policy(
        AcsSw,
        {"N": ("slots", 32), "threads": ("threads", 8)},
        "the paper's window on the host, a stream for each thread",
    ),
    "acs_hw": Policy(
        AcsHw,
        {"N": ("slots", 32), "M": ("distance", 32), "bits": ("id_bits", 8)},
        "the paper's window in hardware, with a stale list of M and ids of so many bits",
    ),
    "on_device": Policy(OnDevice, {}, "this project's scheduler on the device"),
    "ideal": Policy(Ideal, {}, "every edge known, no overhead"),
}
ALL = tuple(POLICIES)

MOST = 1 << 20
"""Most slots, launches looked back at, threads, or streams: more is a typing error."""

_TEXT = re.compile(r"(\w+)(?:\(([^()]*)\))?")


def parsed(text: str) -> tuple[str, dict[str, int]]:
    """Return a policy's name, and its numbers as far as they are given.

    >>> parsed("acs_hw(N=16, M=64)")
    ('acs_hw', {'N': 16, 'M': 64})
    """
    found = _TEXT.fullmatch(text.strip())
    if found is None or found[1] not in POLICIES:
        hint = "; a trace is named by --trace" if text.strip().endswith((".json", ".jsonl")) else ""
        raise UsageError(f"no policy is called {text!r}; there are {', '.join(POLICIES)}{hint}")
    numbers = POLICIES[found[1]].numbers
    given: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in (found[2] or "").split(","))):
        key, _, value = (word.strip() for word in part.partition("="))
        if key not in numbers or not value.isdecimal() or not 1 <= int(value[:20]) <= MOST:
            known = ", ".join(numbers) or "nothing"
            raise UsageError(
                f"{found[1]} takes {known}, as numbers from 1 to {MOST:,}; got {part!r}"
            )
        given[key] = int(value)
    return found[1], given


def whole(text: str) -> tuple[str, dict[str, int]]:
    """Return the name and all numbers, by the names of the arguments: equal for equal runs."""
    name, given = parsed(text)
    numbers = POLICIES[name].numbers.items()
    return name, {argument: given.get(key, default) for key, (argument, default) in numbers}


def model(text: str, trace: Trace, machine: Machine, log: bool = False) -> Model:
    """Make a run that has not begun."""
    name, arguments = whole(text)
    return POLICIES[name].make(resolved(trace), machine, log=log, **arguments)


def simulate(text: str, trace: Trace, machine: Machine) -> Outcome:
    """Run a trace under a policy.

    >>> from acs_cl.emu.generate import generate
    >>> from acs_cl.emu.machines import MACHINES
    >>> trace = generate("chains", width=8, steps=4)
    >>> serial, ideal = (simulate(name, trace, MACHINES["paper"]) for name in ("serial", "ideal"))
    >>> serial.makespan_ns > ideal.makespan_ns
    True
    """
    return model(text, trace, machine).run()


def bounds(trace: Trace, machine: Machine) -> dict[str, int]:
    """Return the times on a device that no policy beats, in nanoseconds."""
    trace = resolved(trace)
    return {
        "critical path": critical_path_ns(trace, machine.gpu),
        "work": work_ns(trace, machine.gpu),
    }
