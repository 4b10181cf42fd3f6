"""Launches of random kernels, beside what the oracle says: what is inferred, and rewritten forms.

In: seeds. Out: what was counted, and what was wrong, with its seed. A pool is a few kernels of one
source, with launches of each whose outcome is defined.
"""

# Long because: drawing, looking up and running are one pipeline.

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from random_launches import WrongError

import acs_cl as acs
from acs_cl import devices
from acs_cl.access.binder import Reached, binder
from acs_cl.access.inference import from_source
from acs_cl.access.signature import Signature
from acs_cl.ranges import intervals
from acs_cl.records import EVERYTHING, Access
from acs_cl.testing import span_of
from random_c.kernels import NUMBERS, PRELUDE, Kernel, Touched
from random_c.meaning import BYTES, DTYPES, EXACT, FORMS, Undefined, View

KERNELS = 8
"""Of a pool."""
LAUNCHES = 6
TRIES = 25
NBYTES = 1536
"""Of an array."""
FORMS_OF = (
    "infer", "again", "whole", "lanes", "bands", "check", "when", "size", "view", "replay",
    "device", "tasks",
)  # fmt: skip
"""`tasks`: bands of a recording, on the scheduler on the device."""


class Launch(NamedTuple):
    """A launch: `views` are the first byte and the bytes of each argument's own array."""

    begin: list[bytes]
    bases: list[int]
    """Of each argument: whose array it is in."""
    views: list[tuple[int, int]]
    numbers: tuple[int, ...]
    size: tuple[int, ...]
    local: tuple[int, ...]
    offset: tuple[int, ...]
    touched: Touched
    groups: list[Touched]
    end: list[bytes]


def draw(chance: random.Random, kernel: Kernel) -> Launch | None:
    """Draw a launch. None: its outcome is not defined."""
    sizes, locals_ = [1, 1, 1], [1, 1, 1]
    if not kernel.alone:
        left = 16
        for axis in range(kernel.axes):
            most = left if axis == 0 else min(left, 3)
            locals_[axis] = chance.choice([one for one in (1, 2, 4) if one <= most])
            sizes[axis] = locals_[axis] * chance.randrange(1, max(1, most // locals_[axis]) + 1)
            left = max(1, left // sizes[axis])
    offset = [chance.randrange(6) if kernel.shifted and at < kernel.axes else 0 for at in range(3)]
    numbers = (
        chance.choice([0, 1, 2, 3, 4, 5, 8, 13, -1]), chance.choice([0, 1, 2, 4, 7, 20, 100, -3]),
        chance.choice([1, 2, 3, 4, -2, 0, 65536, 2**31 - 1, -(2**31)]),
    )  # fmt: skip
    datas, views = [], []
    for at, element in enumerate(kernel.elements):
        count = NBYTES // BYTES[element]
        most = min(EXACT[element], 200) if element in FORMS else 128
        low = 0 if DTYPES[element][0] == "u" else -5
        some = np.array([chance.randrange(low, min(most, 120)) for _ in range(count)],
                        DTYPES[element])  # fmt: skip
        first, nbytes = 0, NBYTES
        if chance.random() < 0.3:
            first = 64 * chance.randrange(0, 8)
            nbytes = NBYTES - first - 16 * chance.randrange(0, 8)
        same = [one for one in range(at) if kernel.elements[one] == element]
        base = chance.choice(same) if same and chance.random() < 0.15 else at
        datas.append(bytearray(some.tobytes()))
        views.append(View(base, datas[base], first, nbytes))
    begin = [bytes(data) for data in datas]
    try:
        touched, *groups = kernel.run(views, numbers, sizes, locals_, offset)
    except (Undefined, RecursionError):
        return None
    axes = kernel.axes
    return Launch(
        begin, [view.base for view in views], [(view.low, view.count) for view in views], numbers,
        tuple(sizes[:axes]), tuple(locals_[:axes]), tuple(offset[:axes]), touched, groups,
        [bytes(data) for data in datas],
    )  # fmt: skip


class Pool:
    """Kernels of one source, with launches of each."""

    def __init__(self, seed: int, kernels: int = KERNELS, launches: int = LAUNCHES) -> None:
        self.seed = seed
        chance = random.Random(seed)
        self.kernels: list[tuple[Kernel, list[Launch]]] = []
        self.drawn = self.refused = 0
        while len(self.kernels) < kernels:
            kernel = Kernel(chance.randrange(1 << 40))
            self.drawn += 1
            found: list[Launch] = []
            for _ in range(TRIES):
                launch = draw(chance, kernel)
                if launch is None:
                    self.refused += 1
                    continue
                found.append(launch)
                if len(found) == launches:
                    break
            if any(any(launch.touched.writes) for launch in found):
                self.kernels.append((kernel, found))
        self.source = PRELUDE + "\n".join(kernel.c for kernel, _ in self.kernels)


def missed_by_inference(pool: Pool, counts: Counter[str]) -> list[str]:
    """Look up what launches touch, and what each of their groups does, in what is inferred. Gives
    what is missed. Needs no device."""
    missed = []
    for kernel, found in pool.kernels:
        signature = from_source(PRELUDE + kernel.c, kernel.name, None, None)
        counts["kernels"] += 1
        counts[f"kernels without an outline: {signature.unclear}"] += signature.outline is None
        for at, launch in enumerate(found):
            counts["launches"] += 1
            for touched in (launch.touched, *launch.groups):
                reached = _reached(signature, launch, touched.group)
                where = f"pool {pool.seed}, kernel {kernel.seed}, launch {at} {touched.group}"
                for argument, (_, count) in enumerate(launch.views):
                    one = reached.get(argument, Reached((), ()))
                    for flag, said, some in (
                        ("reads", one.reads, touched.reads[argument]),
                        ("writes", one.writes, touched.writes[argument]),
                    ):
                        left = sorted(some - _bytes_of(said, count))
                        if left:
                            missed.append(f"{where}: {flag} bytes {left[:8]} of {argument}: {said}")
                        if some and not touched.group:
                            counts[f"{flag}: {'all' if said is None else 'a part'}"] += 1
    return missed


def _reached(signature: Signature, launch: Launch, group: tuple[int, ...]) -> Mapping[int, Reached]:
    """What a launch counts with, or one group of it."""
    if signature.outline is None:
        return {
            at: Reached(None if "r" in one.mode else (), None if "w" in one.mode else ())
            for at, one in enumerate(signature.parameters)
        }
    made = binder(signature)
    numbers = dict(zip(NUMBERS, launch.numbers, strict=True))
    needed = [numbers[signature.parameters[index].name] for index, *_ in made.numbers]
    box = tuple((one, one + 1) for one in group) or None
    return made.reached(launch.size, launch.local, launch.offset, needed, box)


def _bytes_of(rectangles: Any, count: int) -> set[int]:
    if rectangles is None:
        return set(range(count))
    found: set[int] = set()
    for start, pitch, rows, width in rectangles:
        from_row = max(0, -(start + width) // pitch) if pitch else 0  # most may lie in front
        for first in range(start + from_row * pitch, min(start + rows * pitch, count), pitch or 1):
            found.update(range(max(first, 0), min(first + width, count)))
    return found


class Runner:
    """Runtimes that are made once, and what was counted."""

    def __init__(self, device: Any = None, forms: Sequence[str] = FORMS_OF) -> None:
        self.device = devices.choose(device)
        self.context = cl.Context([self.device])
        self.forms = forms
        self.runtimes: dict[str, acs.Runtime] = {}
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def close(self) -> None:
        """Close the runtimes."""
        for runtime in self.runtimes.values():
            runtime.close()

    def runtime(self, kind: str) -> acs.Runtime:
        """Return the runtime of a form, made once."""
        options: dict[str, Any] = {
            "view": {"backend": "serial", "memory": "buffers"}, "lanes": {"backend": "lanes"},
            "device": {"backend": "device"},
            "check": {"backend": "serial", "check": "access,every=1"},
        }.get(kind, {"backend": "serial"})  # fmt: skip
        kind = kind if len(options) > 1 or options["backend"] != "serial" else ""
        if kind not in self.runtimes:
            self.runtimes[kind] = acs.Runtime(context=self.context, **options)
        return self.runtimes[kind]

    def pool(self, pool: Pool) -> None:
        """Run the launches of a pool in all forms."""
        self.counts["kernels"] += len(pool.kernels)
        self.counts["drawn"] += pool.drawn
        for form in self.forms:
            runtime = self.runtime({"bands": "lanes", "tasks": "device"}.get(form, form))
            program = runtime.build(pool.source, ["-w"])
            kernels = [getattr(program, kernel.name) for kernel, _ in pool.kernels]
            for kernel in kernels:
                kernel.infer_ranges = form != "whole"
            if form in ("device", "tasks"):
                runtime.prebuild(*((kernel, launch.local)
                                   for kernel, (_, found) in zip(kernels, pool.kernels, strict=True)
                                   for launch in found))  # fmt: skip
            for kernel, (meaning, found) in zip(kernels, pool.kernels, strict=True):
                for at, launch in enumerate(found):
                    where = f"pool {pool.seed}, kernel {meaning.seed}, launch {at}, {form}"
                    try:
                        self.launch(runtime, form, kernel, meaning, launch, where)
                    except WrongError as wrong:
                        self.wrong.append(str(wrong))
                    except acs.UsageError as error:  # a helper that asks is overloaded
                        if "overloaded" not in str(error):
                            self.wrong.append(f"{where}: {error}")
                        self.counts[f"refused {form}"] += 1

    def launch(
        self, runtime: acs.Runtime, form: str, kernel: Any, meaning: Kernel, launch: Launch,
        where: str,
    ) -> None:  # fmt: skip
        """Run a launch in a form, and compare."""
        self.counts[f"launches {form}"] += 1
        wholes = [
            runtime.array(np.frombuffer(data, DTYPES[element]))
            for data, element in zip(launch.begin, meaning.elements, strict=True)
        ]
        arrays = []
        for base, (low, count), element in zip(
            launch.bases, launch.views, meaning.elements, strict=True
        ):
            size = BYTES[element]
            arrays.append(wholes[base][low // size : (low + count) // size])
        arguments = [*arrays, *launch.numbers]
        more: dict[str, Any] = {"offset": launch.offset} if any(launch.offset) else {}
        sizes = launch.size
        if form in ("bands", "tasks"):
            more["bands"] = 3
        if form == "when":
            flags = runtime.array([0, 1], "u4")
            kernel(sizes, launch.local, *arguments, when=flags[0], **more)
            self.compare(wholes, launch.begin, where + " (when=0)")
            more["when"] = flags[1]
        if form == "size":
            count = runtime.array([sizes[0]], "u4")
            counted = acs.size(count, upto=2 * sizes[0])
            kernel((counted, *sizes[1:]), launch.local, *arguments, **more)
        elif form in ("replay", "tasks"):
            with runtime.record() as graph:
                kernel(sizes, launch.local, *arguments, **more)
            graph.replay()
        else:
            times = 2 if form == "again" else 1
            for _ in range(times):
                for whole, data in zip(wholes, launch.begin, strict=True):
                    whole.set(np.frombuffer(data, whole.dtype))
                handle = kernel(sizes, launch.local, *arguments, **more)
            self.inside(handle.access, wholes, launch, where)
            if handle.access.overwrites:
                raise WrongError(f"{where}: some writes are said to be sure")
        self.compare(wholes, launch.end, where)
        if form == "check":
            found = runtime.stats()["check"]
            if found["found"]:
                raise WrongError(f"{where}: checks found {found}")

    def compare(self, wholes: Sequence[Any], expected: Sequence[bytes], where: str) -> None:
        """Compare what arrays hold with what they should."""
        for at, (whole, right) in enumerate(zip(wholes, expected, strict=True)):
            got = whole.get().tobytes()
            if got != right:
                bad = next(b for b in range(len(right)) if got[b] != right[b])
                raise WrongError(
                    f"{where}: byte {bad} of array {at} is {got[bad]}, expected {right[bad]}"
                )

    def inside(self, access: Access, wholes: Sequence[Any], launch: Launch, where: str) -> None:
        """Compare what a launch touches with what it counts with."""
        for what, spans, touched in (("reads", access.reads, launch.touched.reads),
                                     ("writes", access.writes, launch.touched.writes)):  # fmt: skip
            for at, some in enumerate(touched):
                low, _ = launch.views[at]
                own = span_of(wholes[launch.bases[at]])
                said = np.zeros(own.width, bool)
                for span in spans:
                    if span.base == EVERYTHING:
                        said[:] = True
                    elif span.base == own.base:
                        for first, last in intervals(span):
                            said[max(first - own.start, 0) : max(last - own.start, 0)] = True
                missed = [byte for byte in sorted(some) if not said[low + byte]]
                if missed:
                    raise WrongError(f"{where} {what} bytes {missed[:8]} of argument {at}, and "
                                     f"inference says {'; '.join(map(str, spans))}")  # fmt: skip
