"""Commands of mixed programs, drawn by chance.

In: sources of chance, and which bases may be used. Out: commands, or None where the draw would race
within itself. A command depends on `chance` alone; `spice` changes numbers, and nothing else, so
that a step comes again with other numbers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from mixed.host import (
    BYTES,
    Command,
    Copy,
    Fill,
    Launch,
    Loop,
    Many,
    Set,
    Task,
    View,
    _any,
    _mark,
    meet,
)
from mixed.kernels import CHANGEABLE, GROUP, KERNELS

NAMES = tuple(KERNELS)
SCATTERED = ("pick", "tally", "give")
"""Kernels that touch elements which depend on values."""
DTYPES = ("u1", "u2", "i2", "u4", "i4", "u8", "f4")


class Drawing:
    """Draws from one set of bases. `flat`: those of which only flat views can be taken."""

    def __init__(
        self, chance: random.Random, spice: int, bases: Sequence[int], flat: Sequence[int],
        names: Sequence[str] = NAMES,
    ) -> None:  # fmt: skip
        self.chance, self.spice = chance, random.Random(spice) if spice else None
        self.bases, self.flat, self.names = bases, set(flat), names
        self.arrays = [base for base in bases if base not in self.flat]

    # ---- views ---------------------------------------------------------------------------------

    def _first(self, size: int, unit: int) -> int:
        places = (BYTES - size) // unit
        return self.chance.choice([0, 0, self.chance.randint(0, places)]) * unit

    def flat_view(
        self, dtype: str, length: int, unit: int = 0, bases: Sequence[int] | None = None
    ) -> View:
        """So many elements of any base."""
        item = np.dtype(dtype).itemsize
        base = self.chance.choice(bases or self.bases)
        return View(base, dtype, self._first(length * item, unit or item), "flat", (length,))

    def tile_view(self, dtype: str, rows: int, columns: int, form: str = "tile") -> View:
        """Some rows of any base that is an array."""
        pitch, item = columns + self.chance.choice([0, 0, 1, 3]), np.dtype(dtype).itemsize
        first = self._first(rows * pitch * item, item)
        return View(self.chance.choice(self.arrays), dtype, first, form, (rows, columns, pitch))

    def any_view(self, dtype: str, length: int) -> View:
        """Elements one after another, or with gaps."""
        chance, item = self.chance, np.dtype(dtype).itemsize
        kind = chance.randrange(4)
        if kind == 0:
            step = chance.choice([2, 3])
            first = self._first(length * step * item, item)
            return View(chance.choice(self.arrays), dtype, first, "steps", (length, step))
        if kind == 1 and length % 4 == 0:
            return self.tile_view(dtype, length // 4, 4, chance.choice(["tile", "turned"]))
        return self.flat_view(dtype, length, bases=self.arrays)

    def cell(self) -> View:
        """A word that decides."""
        return self.flat_view("u4", 1, bases=self.arrays)

    # ---- launches ------------------------------------------------------------------------------

    def launch(self, name: str | None = None) -> Launch | None:
        """A launch of a kernel."""
        chance = self.chance
        name = name or chance.choice(self.names)
        kernel = KERNELS[name]
        if kernel.axes == 2 and name != "boxed" and not self.arrays:
            return None
        n = kernel.items or chance.choice([1, 3, 8, 8, 16, 16, 16, 24, 32])
        m = chance.choice([1, 2, 4, 5]) if kernel.axes == 2 else 1
        if kernel.group:
            n = -(-n // kernel.group) * kernel.group
        local = kernel.group or chance.choice([0, 0, 0, 1, 2 if n % 2 == 0 else 1])
        offset = chance.choice([1, 2, 8]) if kernel.plain and chance.random() < 0.06 else 0
        numbers = kernel.numbers(chance, n, m)
        if name in ("tile", "tiles"):
            views = [self.tile_view(dtype, m, n) for dtype, _ in kernel.views]
            pitches = [view.numbers[2] for view in views]
            numbers = (pitches[0], numbers[1]) if name == "tile" else tuple(pitches)
        else:
            lengths = kernel.lengths(offset, n, m, numbers)
            unit = 16 if name == "quads" else 0
            exact = name in SCATTERED or kernel.whole or chance.random() < 0.6
            views = [
                self.flat_view(
                    dtype, length + (0 if exact else chance.choice([0, 1, 7])), unit,
                    self.arrays if kernel.whole else None,
                )
                for (dtype, _), length in zip(kernel.views, lengths, strict=True)
            ]  # fmt: skip
        if kernel.whole:
            numbers = (views[0].first // 4, *numbers[1:])
        launch = Launch(
            name, n, m, local, tuple(views), numbers, offset,
            bands=chance.choice([2, 3]) if chance.random() < 0.05 else 0,
            declared=kernel.whole and chance.random() < 0.5,
        )  # fmt: skip
        launch = self.spiced(launch)
        return None if races(launch) else self._decided(launch)

    def spiced(self, launch: Launch) -> Launch:
        """The launch with other numbers, where its views allow them."""
        if self.spice is None or self.spice.random() < 0.3:
            return launch
        kernel = KERNELS[launch.name]
        drawn = kernel.numbers(self.spice, launch.n, launch.m)
        numbers = tuple(
            new if name in CHANGEABLE else old
            for name, new, old in zip(kernel.names, drawn, launch.numbers, strict=True)
        )
        changed = launch._replace(numbers=numbers)
        return changed if fits(changed) else launch

    def _decided(self, launch: Launch) -> Launch:
        chance = self.chance
        if not self.arrays or launch.bands:
            return launch
        if chance.random() < 0.08:
            return launch._replace(when=self.cell())
        if KERNELS[launch.name].plain and launch.n in (8, 16) and not launch.offset:
            cell = self.cell()
            if chance.random() < 0.06 and not any(_touches(launch, cell)):
                return launch._replace(count=cell, local=chance.choice([0, 1]))
        return launch

    # ---- others --------------------------------------------------------------------------------

    def many(self) -> Many | None:
        """Launches of one call."""
        launch = self.launch()
        if launch is None or launch.count or launch.when or launch.bands or launch.offset:
            return None
        name = KERNELS[launch.name].names[-1:]
        if launch.name == "boxed" or not name or name[0] not in ("a", "v", "turns"):
            return None  # the numbers of a vector would be one for each launch
        count = self.chance.randrange(1, 5)
        last = tuple((self.spice or self.chance).randrange(300) for _ in range(count))
        return Many(launch._replace(declared=False), last)

    def copy(self) -> Copy | None:
        """A copy between views of one shape."""
        dtype, length = self.chance.choice(DTYPES), self.chance.choice([1, 4, 8, 16, 32])
        one, other = self.any_view(dtype, length), self.any_view(dtype, length)
        if one.of(LAYOUTS[one.base]).shape != other.of(LAYOUTS[other.base]).shape:
            return None
        return None if one == other else Copy(one, other)

    def fill(self) -> Fill:
        """A fill."""
        view = self.any_view(self.chance.choice(DTYPES), self.chance.choice([1, 4, 8, 32]))
        return Fill(view, (self.spice or self.chance).randrange(100))

    def set(self) -> Set:
        """Values of the host. Floats are left out: not all bytes are numbers."""
        view = self.any_view(self.chance.choice(DTYPES[:-1]), self.chance.choice([1, 4, 8, 32, 64]))
        return Set(view, (self.spice or self.chance).randrange(10_000))

    def task(self, fails: bool) -> Task | None:
        """A host task."""
        chance = self.chance
        reads = tuple(self.any_view("u4", chance.choice([1, 4, 16]))
                      for _ in range(chance.randrange(3)))  # fmt: skip
        writes = tuple(self.any_view("u4", chance.choice([1, 4, 16]))
                       for _ in range(chance.randrange(1, 3)))  # fmt: skip
        for place, one in enumerate(writes):
            for other in (*reads, *writes[:place]):
                if meet(one.of(LAYOUTS[one.base]), other.of(LAYOUTS[other.base])):
                    return None
        return Task(reads, writes, (self.spice or chance).randrange(1000), fails)

    def recorded(self, depth: int = 0) -> list[Command]:
        """What a graph is recorded of."""
        chance, found = self.chance, list[Command]()
        for _ in range(chance.choice([1, 2, 3, 5, 8])):
            kind = chance.choice("kkkkkkkkkmmcfsthl" if depth == 0 else "kkkkkf")
            command: Command | None
            if kind == "m":
                command = self.many()
            elif kind == "c":
                command = self.copy()
            elif kind == "f":
                command = self.fill()
            elif kind == "s":
                command = self.set()
            elif kind == "t":
                command = self.task(False)
            elif kind == "l" and depth == 0:
                command = self.loop()
            else:
                command = self.launch()
            if command is not None:
                found.append(command)
        return found

    def loop(self) -> Loop | None:
        """A loop, whose flag its body writes."""
        decides = self.launch("decide")
        if decides is None or decides.when:
            return None
        flag = decides.views[2]
        flag = flag._replace(numbers=(1,))
        body = [*self.recorded(1), decides]
        return Loop(flag, self.chance.choice([1, 2, 5]), tuple(body))


LAYOUTS = [np.zeros(BYTES, "u1") for _ in range(32)]


def fits(launch: Launch) -> bool:
    """Whether a launch stays within its views."""
    kernel = KERNELS[launch.name]
    if launch.name in ("tile", "tiles"):
        return True
    lengths = kernel.lengths(launch.offset, launch.n, launch.m, launch.numbers)
    return all(
        length <= view.numbers[0] for length, view in zip(lengths, launch.views, strict=True)
    )


def _touched(launch: Launch) -> tuple[list[np.ndarray], list[np.ndarray]]:  # type: ignore[type-arg]
    """The bytes of its base that each argument of a launch reads, and writes."""
    found = []
    for place in (0, 1):
        dummies = [np.zeros(BYTES, "u1") for _ in launch.views]
        views = [view.of(one) for view, one in zip(launch.views, dummies, strict=True)]
        if launch.name in SCATTERED:
            modes = [mode for _, mode in KERNELS[launch.name].views]
            marked = [view for view, mode in zip(views, modes, strict=True) if "rw"[place] in mode]
        else:
            shape = launch.offset, launch.n, launch.m, launch.numbers
            marked = KERNELS[launch.name].reach(views, *shape)[place]
        for mask in marked:
            _mark(mask, True)
        found.append(dummies)
    return found[0], found[1]


def _touches(launch: Launch, cell: View) -> list[bool]:
    _, writes = _touched(launch)
    return [
        view.base == cell.base and _any(cell.of(mask))
        for view, mask in zip(launch.views, writes, strict=True)
    ]


def races(launch: Launch) -> bool:
    """Whether work-items of a launch would meet at a byte, through two of its arguments."""
    reads, writes = _touched(launch)
    for one, view in enumerate(launch.views):
        for other, second in enumerate(launch.views):
            if one == other or view.base != second.base:
                continue
            if (writes[one] & (reads[other] | writes[other])).any():
                return True
    return False


assert GROUP == 8
