"""One trap tried on a device: what its launch says, and its rewritten forms.

In: a trap in a program. Out: a dictionary. `ranges` is 'exact', 'wider', 'everything' (all of an
argument where less is touched), or begins with 'missed'. A form is 'same', or says how it differs,
or that the runtime refused it with an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl

import acs_cl as acs
from acs_cl.errors import CheckError
from acs_cl.records import EVERYTHING, Access, Span
from acs_cl.testing import span_of
from traps.case import Buffer, Image, Trap
from traps.measuring import (
    Measured,
    Memory,
    Plain,
    Stray,
    Unsteady,
    all_of,
    arguments,
    contents,
    make_image,
    measure,
)  # fmt: skip

if TYPE_CHECKING:
    from traps.bench import Bench

SHIFT = 64
"""Bytes before a view in the middle: enough for every type, too few for a sub-buffer."""
FORMS = ("replay", "when", "size", "view", "checked", "device")
Result = dict[str, Any]
Say = Callable[[str], None]


class Try:
    """A trap, with the name that its kernel has in a program."""

    def __init__(
        self, bench: Bench, trap: Trap, kernel: str, source: str, options: list[str], plain: Any
    ) -> None:
        self.bench, self.trap, self.kernel = bench, trap, kernel
        self.source, self.options, self.plain = source, options, plain
        self.memory = contents(trap)
        self.left: Memory = []
        self.is_measured = False
        self.result: Result = {"name": trap.name}

    def measured(self, step: int) -> None:
        """Measure the kernel, and compare with what a launch says. Nothing else if it cannot be.
        `step`: how many bytes are flipped at first. What is measured is the runtime's program,
        unchanged, which saves building another."""
        self.bench.say(f"plain {self.trap.name}")
        try:
            run = Plain(self.bench.queue, cl.Kernel(self.plain, self.kernel), self.trap)
            found = measure(run, self.memory, step)
            run.stay_inside(self.memory, found.left)
        except Stray as stray:
            self.result |= {"ranges": f"not measured: {stray}", "forms": {}}
        except Unsteady:
            self.result["skipped"] = "two plain runs differ"
        except (cl.Error, TypeError) as error:
            self.result["skipped"] = f"plain launch: {log_of(error)}"
        else:
            self.left, self.is_measured = found.left, True
            self.bench.say(f"ranges {self.trap.name}")
            touched = [list(map(intervals, each)) for each in (found.reads, found.writes)]
            self.result |= {"ranges": self.ranges(found), "touched": touched, "forms": {}}

    def attempt(self, form: str) -> None:
        """Compute by a rewritten form, and note how that came out."""
        if not self.is_measured:
            return
        self.bench.say(f"{form} {self.trap.name}")
        try:
            found = getattr(self, form)()
        except acs.AcsError as error:
            found = f"refused: {short(error)}"
        except Exception as error:
            found = f"failed: {type(error).__name__}: {short(error)}"
        self.result["forms"][form] = found

    # ---- ranges ----

    def ranges(self, measured: Measured) -> str:
        """How the access of a launch compares with what was measured."""
        runtime = self.bench.serial
        try:
            arrays = self.arrays(runtime)
            handle = self.launch(runtime, self.program(runtime), arrays)
            left = self.contents_of(arrays)
        except acs.AcsError as error:
            return f"refused: {short(error)}"
        wrong = self.compared(left)
        if wrong != "same":
            return f"missed: the launch itself is {wrong}"
        return self.verdict(handle.access, arrays, measured.reads, measured.writes)

    def recorded(self, reads: list[set[int]], writes: list[set[int]]) -> str:
        """How the access of a recorded launch, which does not run, compares with these bytes."""
        runtime = self.bench.serial
        arrays, kernel = self.arrays(runtime), self.program(runtime)
        with runtime.record():
            handle = self.launch(runtime, kernel, arrays)
        return self.verdict(handle.access, arrays, reads, writes)

    def verdict(
        self, access: Access, arrays: list[Any], reads: list[set[int]], writes: list[set[int]]
    ) -> str:
        """How an access compares with the bytes of each array that are touched."""
        verdicts: set[str] = set()
        missed = []
        for kind, spans, touched in (
            ("reads", access.reads, reads), ("writes", access.writes, writes)
        ):  # fmt: skip
            for index, seen in enumerate(touched):
                inferred = said(spans, arrays[index], len(self.memory[index]))
                if seen - inferred:
                    missed.append(f"{kind} of {index}: {_brief(seen - inferred)}")
                elif inferred == seen:
                    verdicts.add("exact")
                else:
                    whole = len(inferred) == len(self.memory[index])
                    verdicts.add("everything" if whole else "wider")
        if missed:
            return f"missed {'; '.join(missed)}"
        order = ("everything", "wider", "exact")
        return next(one for one in order if one in verdicts or one == "exact")

    # ---- launches ----

    def program(self, runtime: acs.Runtime) -> Any:
        return getattr(self.bench.build(runtime, self.source, self.options), self.kernel)

    def arrays(self, runtime: acs.Runtime) -> list[Any]:
        kinds = [one for one in self.trap.args if isinstance(one, (Buffer, Image))]
        return [
            make_image(runtime.context, one) if isinstance(one, Image) else runtime.array(values)
            for one, values in zip(kinds, self.memory, strict=True)
        ]

    def launch(self, runtime: acs.Runtime, kernel: Any, arrays: list[Any], **more: Any) -> Any:
        size = more.pop("size", self.trap.size)
        if self.trap.offset is not None:
            more["offset"] = self.trap.offset
        return kernel(size, self.trap.local, *arguments(self.trap, arrays), **more)

    def contents_of(self, arrays: list[Any]) -> Memory:
        return [self.content_of(array) for array in arrays]

    def content_of(self, array: Any) -> Any:
        if not isinstance(array, cl.Image):
            return array.get()
        for runtime in self.bench.runtimes():
            if repr(runtime):
                runtime.finish()
        where = all_of(array)
        values = np.empty(math.prod(where["region"]) * 4, np.uint8)
        cl.enqueue_copy(self.bench.queue, values, array, **where)
        return values

    def compared(self, got: Memory, wanted: Memory | None = None) -> str:
        wanted = self.left if wanted is None else wanted
        for index, (one, other) in enumerate(zip(got, wanted, strict=True)):
            places = np.nonzero(one != other)[0]
            if len(places):
                at = int(places[0])
                return (
                    f"different: buffer {index}, {_brief(places.tolist())}: "
                    f"{one[at : at + 4].tolist()}, plain {other[at : at + 4].tolist()}"
                )
        return "same"

    # ---- forms ----

    def replay(self) -> str:
        """Recorded, and replayed once."""
        runtime = self.bench.serial
        arrays, kernel = self.arrays(runtime), self.program(runtime)
        with runtime.record() as graph:
            self.launch(runtime, kernel, arrays)
        graph.replay()
        return self.compared(self.contents_of(arrays))

    def when(self) -> str:
        """Once under a condition that does not hold, once under one that does."""
        runtime = self.bench.serial
        arrays, kernel = self.arrays(runtime), self.program(runtime)
        flags = runtime.array([0, 1], "u4")
        self.launch(runtime, kernel, arrays, when=flags[0])
        found = self.compared(self.contents_of(arrays), self.memory)
        if found != "same":
            return f"when=0 {found}"
        self.launch(runtime, kernel, arrays, when=flags[1])
        return self.compared(self.contents_of(arrays))

    def size(self) -> str:
        """With a size that stands in memory, of at most twice as many."""
        runtime = self.bench.serial
        arrays, kernel = self.arrays(runtime), self.program(runtime)
        count = runtime.array([self.trap.size[0]], "u4")
        counted = acs.size(count, upto=2 * self.trap.size[0])
        self.launch(runtime, kernel, arrays, size=(counted, *self.trap.size[1:]))
        return self.compared(self.contents_of(arrays))

    def view(self) -> str:
        """On views in the middle of buffers, whose other bytes have to stay."""
        runtime = self.bench.views
        around = [np.full(len(values) + 2 * SHIFT, 0xA5, np.uint8) for values in self.memory]
        for values, whole in zip(self.memory, around, strict=True):
            whole[SHIFT:-SHIFT] = values
        if any(isinstance(one, Image) for one in self.trap.args):
            return "refused: images have no views"
        arrays = [runtime.array(whole) for whole in around]
        self.launch(runtime, self.program(runtime), [whole[SHIFT:-SHIFT] for whole in arrays])
        for left, whole in zip(self.left, around, strict=True):
            whole[SHIFT:-SHIFT] = left
        return self.compared(self.contents_of(arrays), around)

    def checked(self) -> str:
        """Under a check, which compares each access where it can. No trap leaves its buffers."""
        runtime = self.bench.checked
        arrays, kernel = self.arrays(runtime), self.program(runtime)
        try:
            self.launch(runtime, kernel, arrays)
        except CheckError as error:
            return f"failed: accused: {short(error)}"
        return self.compared(self.contents_of(arrays))

    def device(self) -> str:
        """By the scheduler on the device, into which it was built before."""
        runtime = self.bench.scheduled
        arrays, kernel = self.arrays(runtime), self.program(runtime)
        before = _tasks(runtime)
        self.launch(runtime, kernel, arrays)
        found = self.compared(self.contents_of(arrays))
        return found if found != "same" or _tasks(runtime) > before else "same, on a lane"


def _tasks(runtime: acs.Runtime) -> int:
    count: int = runtime.stats()["scheduler"]["tasks"]
    return count


def said(spans: Sequence[Span], array: Any, count: int) -> set[int]:
    """Which bytes of an array are among some spans."""
    if any(span.base == EVERYTHING for span in spans):
        return set(range(count))
    if isinstance(array, cl.Image):
        return set(range(count)) if any(span.base == -array.int_ptr for span in spans) else set()
    own = span_of(array)
    found: set[int] = set()
    for span in spans:
        if span.base == own.base:
            for row in range(span.rows):
                begin = span.start - own.start + row * span.pitch
                found.update(range(begin, begin + span.width))
    return found & set(range(count))


def intervals(places: Iterable[int]) -> list[tuple[int, int]]:
    """Positions as intervals: where each begins, and where it has ended."""
    parts: list[list[int]] = []
    for place in sorted(places):
        if parts and parts[-1][1] == place:
            parts[-1][1] += 1
        else:
            parts.append([place, place + 1])
    return [(low, high) for low, high in parts]


def _brief(places: Iterable[int]) -> str:
    parts = intervals(places)
    text = ", ".join(f"{low}..{high}" for low, high in parts[:4])
    return f"bytes {text}{' ...' if len(parts) > 4 else ''}"


_FOLDERS = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+")


def short(error: BaseException) -> str:
    """An error in a line."""
    return " ".join(str(error).split())[:300]


def log_of(error: Exception) -> str:
    """What a driver says is wrong, without the folders of this machine."""
    lines = [line for line in str(error).splitlines() if "error" in line.lower()]
    return _FOLDERS.sub("", (lines or [str(error)])[0])[:200]
