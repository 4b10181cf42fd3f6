"""The record of a block, in plain values: the data of reports and advice.

Input: a runtime whose launches have ended, or a timeline that was saved. Output: a `Record`, in
which advice finds what costs the block time.

Invariant: only `Clocks` compares times of two clocks, and it gives the possible error.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from ..emu.convert import read_timeline
from ..emu.fields import MOST
from ..errors import UsageError
from ..records import Found, NamedTuple, ReplayTask, Run, Span
from .about import About, Needs
from .clocks import Clocks, clocks_of, on_one_clock
from .edges import Chain, Edge, Edges, chain, edges_of
from .slices import AT_ONCE, BYPASS, Slice, Wait, on_device

ON_A_QUEUE = "on a queue"
PLAIN = {int: (int,), str: (str,), bool: (bool,), float: (int, float)}
"""Types of values in a file, by the type that a record has."""
_Known = TypeVar("_Known", bound=NamedTuple)


class Record(NamedTuple):
    """A block. `slices` are in program order."""

    title: str
    slices: Sequence[Slice]
    waits: Sequence[Wait]
    edges: dict[int, list[Edge]]
    where: dict[int, str]
    about: About
    clocks: Clocks

    @property
    def whole(self) -> tuple[int, int]:
        """Return beginning and end of the block on the host's clock. If clocks cannot be compared:
        of the launches on the device, on its clock."""
        about, clocks = self.about, self.clocks
        mine = [one for one in self.slices if clocks.comparable or one.clock != "host"]
        mine = mine or list(self.slices)
        if not mine:
            return about.began_ns, about.ended_ns
        first = min(clocks.on_host(one, one.start_ns) for one in mine)
        last = max(clocks.on_host(one, one.end_ns) for one in mine)
        if not clocks.comparable:
            return first, last
        called = [one.called_ns for one in mine if one.called_ns]
        began = about.began_ns or min([first, *called])
        return min(began, first), max(about.ended_ns, last, *(one.end_ns for one in self.waits))

    @property
    def whole_ns(self) -> int:
        """Return the length of the block."""
        began, ended = self.whole
        return max(1, ended - began)

    def chain(self, edges: Edges | None = None) -> Chain:
        """Return the longest chain, with these edges or its own. If clocks cannot be compared, work
        of the host takes no time in it."""
        slices = self.slices
        if not self.clocks.comparable:
            slices = [
                one._replace(end_ns=one.start_ns) if one.clock == "host" else one for one in slices
            ]
        return chain(slices, self.edges if edges is None else edges)

    def interval(self, one: Slice) -> tuple[int, int]:
        """Return when a launch ran, on the clock of `whole`."""
        clocks = self.clocks
        return clocks.on_host(one, one.start_ns), clocks.on_host(one, one.end_ns)


class Finding(NamedTuple):
    """A finding: its name, a sentence with its figures, and about how much time it costs."""

    kind: str
    text: str
    cost_ns: int
    launches: tuple[int, ...] = ()
    """One or two launches to look at."""
    change: str = ""
    """A change that the emulator can try (`report.what_if.CHANGES`)."""
    name: str = ""
    """The kernel that the finding is about."""
    edges: Edges | None = None
    """The edges that would remain."""
    is_most: bool = False
    """Whether `cost_ns` is an upper limit of the gain."""


Traced = tuple[Sequence[Slice], Sequence[Wait], About]
"""The trace of a runtime so far."""


def record(
    title: str,
    slices: Sequence[Slice],
    waits: Sequence[Wait],
    known: About,
    where: dict[int, str] | None = None,
) -> Record:
    """Combine observations. `where`: routes, more exact than the slices' own."""
    where = where or {}
    slices = on_one_clock(sorted(slices, key=lambda one: one.number))
    places = {one.number: _place(one, where.get(one.number, "")) for one in slices}
    return Record(title, slices, waits, edges_of(slices), places, known, clocks_of(slices))


def _place(one: Slice, said: str) -> str:
    """Return where a launch ran: the backend's answer, unless the slice is more exact."""
    return place_of(one) if said in ("", ON_A_QUEUE) or one.device >= 0 else said


def place_of(one: Slice) -> str:
    """Return where a launch ran, as far as its slice tells."""
    if one.epoch:
        return f"epoch {one.epoch}"
    if one.lane == BYPASS:
        return "bypass"
    if one.lane == AT_ONCE:
        return "between devices"
    return "host thread" if one.lane < 0 else on_device(one, f"lane {one.lane}")


def load(path: str | Path) -> Record:
    """Read a file of `rt.trace.save` or `rt.measure().save`."""
    path = Path(path)
    head, found = read_timeline(path)
    try:
        noted = _noted(head.get("noted", {}))
        parts = [tuple(map(_part, one)) for one in head.get("noted", {}).get("parts", ())]
        slices = [_slice(one, parts) for one in found]
        waits = [Wait(*map(int, one)) for one in head.get("waits", ())]
        said = dict(head.get("about", {}))
        said["found"] = tuple(map(str, said.get("found", ())))
        said["kernels"] = tuple(
            Needs(str(name), *map(int, needs)) for name, *needs in said.get("kernels", ())
        )
        known = _plain(About(**{**said, "noted": noted}))
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UsageError(f"{path.name}: cannot be read as a timeline: {error}") from None
    return record(path.stem, slices, waits, known)


def _noted(found: dict[str, Any]) -> Found:
    """Return the notes of the scheduler's groups."""
    values = {name: found[name] for name in Found._fields if name in found}
    untimed = tuple((str(name), str(why)) for name, why in values.get("untimed", ()))
    return _plain(Found(**{**values, "runs": (), "parts": (), "untimed": untimed}))


def _plain(known: _Known) -> _Known:
    """Return a record that was read. Raise `ValueError` if a value has another type than its name
    says: a page would fail far from it."""
    for name, kind in get_type_hints(type(known)).items():
        value = getattr(known, name)
        is_list = kind == tuple[int, ...]
        types = (int,) if is_list else PLAIN.get(kind)
        for one in value if is_list else [value]:
            if types and (type(one) not in types or (types == (int,) and abs(one) > MOST)):
                raise ValueError(f"{name!r} has to be {types[-1].__name__}, got {one!r}")
    return known


def _part(found: Sequence[Any]) -> ReplayTask:
    name, launch, band, reads, writes, upstream = found
    read, written = (tuple(_plain(Span(*one)) for one in some) for some in (reads, writes))
    return ReplayTask(str(name), int(launch), int(band), read, written, tuple(map(int, upstream)))


def _slice(found: dict[str, Any], parts: Sequence[tuple[ReplayTask, ...]]) -> Slice:
    values = {name: found[name] for name in Slice._fields if name in found}
    for name in ("upstream", "waits"):
        values[name] = tuple(values.get(name, ()))
    for name in ("lane", "hazards_ns", "submit_ns", "called_ns", "handed_ns", "seen_ns"):
        values[name] = int(values.get(name, 0))
    values["runs"] = tuple(_plain(Run(*one)) for one in values.get("runs", ()))
    at = int(values.get("parts", 0))
    if not 0 <= at <= len(parts):
        raise ValueError(f"'parts' has to be one of {len(parts)} lists, got {at}")
    values["parts"] = parts[at - 1] if at else ()
    named = values.get("arguments", ())
    values["arguments"] = tuple((str(name), str(mode), int(base)) for name, mode, base in named)
    slice_ = _plain(Slice(**values))
    if slice_.upstream and max(slice_.upstream) >= slice_.number:
        raise ValueError(f"launch {slice_.number} follows launch {max(slice_.upstream)}")
    return slice_
