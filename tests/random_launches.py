"""Random programs of random kernels: inference on and off, checks, and what is really touched.

In: seeds. Out: `Counts`, or a `WrongError` that names the seed. A pool is a few kernels of one
source, and programs that launch them; each program is drawn together with its outcome, by the
oracle of `random_c.usual`, so that every launch has one right result. It is run with inference and
without, on one backend after another, and once more under `check="access"`; the values have to be
the oracle's each time, and the bytes that inference gives a launch have to hold those that the
oracle touched.

`random_batches.py` runs many of them, in processes of their own.
"""

# Long because: drawing, running and counting are one pipeline.

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
from random_c.kernels import PRELUDE
from random_c.meaning import BYTES, DTYPES, Undefined, View
from random_c.usual import UsualKernel

import acs_cl as acs
from acs_cl import core, devices
from acs_cl.devices.build import build
from acs_cl.program import Program
from acs_cl.ranges import intervals, overlap
from acs_cl.records import Access, Span
from acs_cl.testing import span_of

KERNELS = 6
"""Of a pool."""
PROGRAMS = 20
"""Of a pool: kernels take longer to build than to run."""
LAUNCHES = 8
TRIES = 12
"""Draws of arguments for a launch before it is left out."""

ARRAYS = (
    ("int", 600), ("int", 300), ("uint", 200), ("short", 300), ("uchar", 500), ("long", 150),
)  # fmt: skip
BACKENDS = (
    ("out_of_order", "eager"), ("lanes", "eager"), ("out_of_order", "ready_first"),
    ("lanes", "ready_first"),
)  # fmt: skip
DEVICE_EVERY = 40
"""Pools of which one runs on the scheduler on the device, too; building that takes a while."""
ORDER_EVERY = 10
"""Programs of which one is checked for other orders, too."""


class WrongError(AssertionError):
    """A program came out wrong."""


class Touched(NamedTuple):
    """The elements of each array that a launch reads and writes."""

    reads: dict[int, set[int]]
    writes: dict[int, set[int]]


class Launch(NamedTuple):
    """A launch of a program: `views` are an array, its first element and how many."""

    kernel: int
    views: tuple[tuple[int, int, int], ...]
    numbers: tuple[int, ...]
    sizes: tuple[int, int]
    offset: tuple[int, int]
    touched: Touched


class Drawn(NamedTuple):
    """A program with its outcome."""

    seed: int
    begin: list[np.ndarray[Any, Any]]
    launches: list[Launch]
    end: list[np.ndarray[Any, Any]]


class Pool:
    """Kernels that are built together, all of which some launch can use."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        chance = random.Random(seed)
        self.local = chance.choice([1, 2, 4, 8])
        self.offsets = chance.random() < 0.25
        self.kernels: list[UsualKernel] = []
        self.drawn = 0
        while len(self.kernels) < KERNELS:
            kernel = UsualKernel(chance.randrange(1 << 40))
            self.drawn += 1
            memory = _memory(chance)
            if any(self._draw(chance, memory, 0, kernel) for _ in range(TRIES)):
                self.kernels.append(kernel)
        self.source = PRELUDE + "\n".join(kernel.c for kernel in self.kernels)

    def program(self, seed: int) -> Drawn:
        """A program of its kernels."""
        chance = random.Random(f"{self.seed} {seed}")
        memory = _memory(chance)
        begin = _hosts(memory)
        launches: list[Launch] = []
        for _ in range(LAUNCHES):
            index = chance.randrange(len(self.kernels))
            for _ in range(TRIES):
                launch = self._draw(chance, memory, index, self.kernels[index])
                if launch is not None:
                    launches.append(launch)
                    break
        return Drawn(seed, begin, launches, _hosts(memory))

    def _draw(
        self, chance: random.Random, memory: list[bytearray], index: int, kernel: UsualKernel
    ) -> Launch | None:
        """A launch, which has then run on `memory`; None where that is not defined."""
        views = []
        for element in kernel.elements:
            array = chance.choice([i for i, (name, _) in enumerate(ARRAYS) if name == element])
            count = ARRAYS[array][1]
            low, high = 0, count
            if chance.random() < 0.35:
                low, high = sorted(chance.sample(range(count + 1), 2))
            views.append((array, low, high - low))
        numbers = (
            chance.choice([0, 1, 5, 13, 20, 40, 64, 100, 150, -2]),
            chance.choice([0, 1, 3, 8, 17, 50, 100, 200, 2**31 - 1, -7]),
            chance.choice([1, 2, 3, 4, 20, 60, -3]),
        )
        most = 32 // self.local
        sizes = self.local * chance.randrange(1, most + 1), chance.choice([1, 1, 1, 2, 3])
        offset = (0, 0)
        if self.offsets and chance.random() < 0.5:
            offset = chance.randrange(9), 0 if sizes[1] == 1 else chance.randrange(3)
        try:
            found, *_ = kernel.run(
                [_view(memory, *one) for one in views], numbers, (*sizes, 1), (self.local, 1, 1),
                (*offset, 0),
            )  # fmt: skip
        except (Undefined, RecursionError):
            return None
        touched = Touched(_elements(views, found.reads), _elements(views, found.writes))
        if not any(touched.writes.values()) and chance.random() < 0.9:
            return None  # it has done nothing
        return Launch(index, tuple(views), numbers, sizes, offset, touched)


def _memory(chance: random.Random) -> list[bytearray]:
    """Return the bytes of all arrays, of random values."""
    return [
        bytearray(np.array([chance.randrange(0 if name[0] == "u" else -4, 90)
                            for _ in range(count)], DTYPES[name]).tobytes())
        for name, count in ARRAYS
    ]  # fmt: skip


def _hosts(memory: Sequence[bytearray]) -> list[np.ndarray[Any, Any]]:
    return [np.frombuffer(bytes(some), DTYPES[name])
            for some, (name, _) in zip(memory, ARRAYS, strict=True)]  # fmt: skip


def _view(memory: Sequence[bytearray], array: int, low: int, count: int) -> View:
    size = BYTES[ARRAYS[array][0]]
    return View(array, memory[array], low * size, count * size)


def _elements(
    views: Sequence[tuple[int, int, int]], touched: Sequence[set[int]]
) -> dict[int, set[int]]:
    """Return the elements of arrays that bytes of views are in."""
    found: dict[int, set[int]] = {array: set() for array, _, _ in views}
    for (array, low, _), some in zip(views, touched, strict=True):
        size = BYTES[ARRAYS[array][0]]
        found[array].update(low + byte // size for byte in some)
    return found


class Runner:
    """Runtimes that are made once, and what was counted."""

    def __init__(self, device: Any = None) -> None:
        self.device = devices.choose(device)
        self.context = cl.Context([self.device])
        self._made: dict[tuple[str, str, str], tuple[acs.Runtime, list[acs.Array]]] = {}
        self._kernels: dict[tuple[Any, ...], list[Any]] = {}
        """Those of the pool, by runtime, with inference and without."""
        self.counts: Counter[str] = Counter()
        self.now = ""

    def close(self) -> None:
        """All of them."""
        for runtime, _ in self._made.values():
            runtime.close()

    def renew(self) -> None:
        """Have new runtimes: what the old ones are in is not known."""
        self._made.clear()
        self._kernels.clear()

    def pool(self, seed: int, count: int) -> None:
        """The first `count` programs of a pool."""
        self.now = f"pool {seed}"
        self._kernels.clear()
        pool = Pool(seed)
        native = build(self.context, self.device, pool.source, ["-w"])
        self.counts["kernels"] += len(pool.kernels)
        self.counts["kernels drawn"] += pool.drawn
        on_device = seed % DEVICE_EVERY == 0
        for number in range(count):
            self.now = f"pool {seed}, program {number}"
            drawn = pool.program(number)
            how = BACKENDS[(seed + number) % len(BACKENDS)]
            narrow = self._run(pool, native, drawn, (*how, ""), True)
            self._run_again(pool, native, drawn, (*how, ""), narrow)
            whole = self._run(pool, native, drawn, (*how, ""), False)
            checks = "access,order=1,every=1" if number % ORDER_EVERY == 0 else "access,every=1"
            self._run(pool, native, drawn, ("serial", "eager", checks), True)
            if on_device:
                on_scheduler = self._run(pool, native, drawn, ("device", "eager", ""), True)
                self._run_again(pool, native, drawn, ("device", "eager", ""), on_scheduler)
                self.counts["programs on the device's scheduler"] += 1
            self._count(drawn, narrow, whole)

    def _run_again(
        self, pool: Pool, native: Any, drawn: Drawn, how: tuple[str, str, str], before: list[Access]
    ) -> None:
        """The same launches once more, which the core makes: they count with the same bytes."""
        for index, (one, other) in enumerate(
            zip(before, self._run(pool, native, drawn, how, True), strict=True)
        ):
            if one != other:
                raise WrongError(
                    f"{self.now}: on {how}, launch {index} touches {one}, and again {other}"
                )

    def _runtime(self, how: tuple[str, str, str]) -> tuple[acs.Runtime, list[acs.Array]]:
        made = self._made.get(how)
        if made is None:
            backend, issue, check = how
            runtime = acs.Runtime(
                context=self.context, backend=backend, issue=issue, check=check or None
            )
            arrays = [runtime.zeros(count, DTYPES[name]) for name, count in ARRAYS]
            made = self._made[how] = runtime, arrays
        return made

    def _run(
        self, pool: Pool, native: Any, drawn: Drawn, how: tuple[str, str, str], infer: bool
    ) -> list[Access]:
        """Run a program. What each launch counts as touching, by arrays in place of bases."""
        runtime, arrays = self._runtime(how)
        kernels = self._kernels.get((how, infer))
        if kernels is None:
            program = Program(runtime.engine, native, pool.source, ())
            kernels = [getattr(program, kernel.name) for kernel in pool.kernels]
            for kernel in kernels:
                kernel.infer_ranges = infer
            if how[0] == "device":
                runtime.prebuild(*((kernel, (pool.local,)) for kernel in kernels))
            self._kernels[how, infer] = kernels
        for array, values in zip(arrays, drawn.begin, strict=True):
            array.set(values)
        handles = []
        for launch in drawn.launches:
            two = launch.sizes[1] > 1
            offset = launch.offset if two else launch.offset[:1]
            handles.append(kernels[launch.kernel](
                launch.sizes if two else launch.sizes[:1],
                (pool.local, 1) if two else (pool.local,),
                *[arrays[array][low : low + count] for array, low, count in launch.views],
                *launch.numbers,
                offset=offset if any(offset) else None,
            ))  # fmt: skip
        got = [array.get(wait=False) for array in arrays]
        for index, (handle, right) in enumerate(zip(got, drawn.end, strict=True)):
            values = handle.wait()
            if not np.array_equal(values, right):
                at = int(np.flatnonzero(values != right)[0])
                raise WrongError(
                    f"{self.now}: on {how}, inference {infer}: element {at} of array {index} is "
                    f"{values[at]}, expected {right[at]}"
                )
        if how[2]:
            self.counts["launches checked"] += len(handles)
            found = runtime.stats()["check"]
            if found["found"] or found["unsteady"] or found["unchecked"]:
                raise WrongError(f"{self.now}: checks found {found}")
        bases = {span_of(array).base: index for index, array in enumerate(arrays)}
        return [
            Access(
                tuple(span._replace(base=1 + bases[span.base]) for span in handle.access.reads),
                tuple(span._replace(base=1 + bases[span.base]) for span in handle.access.writes),
            )
            for handle in handles
        ]

    def _count(self, drawn: Drawn, narrow: list[Access], whole: list[Access]) -> None:
        """Nothing that is touched is missed; and what inference gains."""
        counts = self.counts
        counts["programs"] += 1
        counts["launches"] += len(drawn.launches)
        exact = []
        for index, (launch, access) in enumerate(zip(drawn.launches, narrow, strict=True)):
            for what, touched, spans in (
                ("reads", launch.touched.reads, access.reads),
                ("writes", launch.touched.writes, access.writes),
            ):
                missed = _missed(touched, spans)
                if missed is not None:
                    raise WrongError(
                        f"{self.now}: launch {index} {what} element {missed[1]} of array "
                        f"{missed[0]}, and inference says {'; '.join(map(str, spans))}"
                    )
            counts["launches with fewer bytes"] += _bytes(access) < _bytes(whole[index])
            exact.append(_exact(launch.touched))
        for name, accesses in (("whole", whole), ("inferred", narrow), ("touched", exact)):
            counts[f"pairs {name}"] += _pairs(accesses)
            counts[f"edges {name}"] += _edges(accesses)


def _missed(touched: dict[int, set[int]], spans: Iterable[Span]) -> tuple[int, int] | None:
    """The first touched element that is in none of the spans."""
    spans = list(spans)
    for array, elements in touched.items():
        size = np.dtype(DTYPES[ARRAYS[array][0]]).itemsize
        inside = np.zeros(ARRAYS[array][1] * size, bool)
        for span in spans:
            if span.base == 1 + array:
                for low, high in intervals(span):
                    inside[max(low, 0) : high] = True
        for element in sorted(elements):
            if not inside[element * size : (element + 1) * size].all():
                return array, element
    return None


def _bytes(access: Access) -> int:
    return sum(span.nbytes for span in (*access.reads, *access.writes))


def _exact(touched: Touched) -> Access:
    """An access of just the elements that were touched."""

    def spans(some: dict[int, set[int]]) -> tuple[Span, ...]:
        found = []
        for array, elements in some.items():
            size = np.dtype(DTYPES[ARRAYS[array][0]]).itemsize
            start = last = None
            for element in [*sorted(elements), None]:
                if last is not None and element != last + 1:
                    width = (last + 1 - start) * size
                    found.append(Span(1 + array, start * size, width, 1, width))
                    start = None
                start, last = element if start is None else start, element
        return tuple(found)

    return Access(spans(touched.reads), spans(touched.writes))


def _pairs(accesses: Sequence[Access]) -> int:
    """How many pairs of launches share a byte that one of them writes."""

    def meet(some: Iterable[Span], others: Iterable[Span]) -> bool:
        others = list(others)
        return any(a.base == b.base and overlap(a, b) for a in some for b in others)

    return sum(
        meet(a.writes, (*b.reads, *b.writes)) or meet(a.reads, b.writes)
        for index, a in enumerate(accesses)
        for b in accesses[:index]
    )


def _edges(accesses: Sequence[Access]) -> int:
    """How many edges the runtime would make if nothing ended meanwhile."""
    hazards = core.native.Hazards()
    return sum(
        len(hazards.enter(number, access.reads, access.writes) or ())
        for number, access in enumerate(accesses, 1)
    )
