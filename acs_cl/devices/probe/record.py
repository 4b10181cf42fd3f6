"""The record of a probe, and its way to JSON and back.

In and out: values only.  Invariant: ``from_json(to_json(p)) == p``, and a document with a missing,
unknown or mistyped field is a ``ValueError``, never a half-filled probe.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, get_type_hints

from ...records import Report


class Gain(NamedTuple):
    """How many times faster than one in-order queue the same kernels ran on *lanes* of them."""

    lanes: int
    gain: float


class Probe(NamedTuple):
    """What a device declares, what was measured on it, and what ``auto`` makes of it.

    Figures are ``None`` where nothing was measured.  All clocks are the host's, except
    ``*_overlap``: kernels in flight on average, from the device's profiling intervals.
    """

    device: str
    driver: str
    kind: str
    compute_units: int
    # declared by the driver, or found by a test compile
    memory_model: str  # "c11" | "ptx" | "levels"
    may_poll: bool
    may_poll_note: str
    svm: str  # "none" | "coarse" | "fine" | "system"
    command_buffers: bool
    sub_buffer_align_bytes: int
    argument_info: bool | None = None
    # measured
    measured: bool = False
    measured_on: str = ""
    took_s: float = 0.0
    settled: bool = True  # False: other programs disturbed it, so it is not worth keeping
    kernel_us: float | None = None
    out_of_order_accepted: bool | None = None
    out_of_order_gain: float | None = None
    out_of_order_overlap: float | None = None
    out_of_order_slab_gain: float | None = None
    lane_gains: tuple[Gain, ...] = ()
    lane_overlap: float | None = None
    lane_slab_gains: tuple[Gain, ...] = ()
    launch_us: float | None = None
    launch_with_event_us: float | None = None
    launch_out_of_order_us: float | None = None
    read_us: float | None = None
    read_p99_us: float | None = None
    notes: tuple[str, ...] = ()
    # what follows
    backend: str = "serial"  # "serial" | "out_of_order" | "lanes"
    lanes: int = 1
    memory: str = "buffers"  # "svm" | "buffers"
    sentence: str = ""

    def to_json(self) -> Report:
        """Plain values, one for each field."""
        document = self._asdict()
        for name in _GAINS:
            document[name] = [gain._asdict() for gain in document[name]]
        document["notes"] = list(self.notes)
        return document

    @classmethod
    def from_json(cls, document: object) -> Probe:
        """The probe that :meth:`to_json` wrote; ``ValueError`` for anything else."""
        if not isinstance(document, dict) or set(document) != set(cls._fields):
            raise ValueError("not the fields of a probe")
        values = dict(document)
        for name in _GAINS:
            values[name] = tuple(_gain(entry) for entry in _entries(name, values[name]))
        values["notes"] = tuple(_entries("notes", values["notes"]))
        for name, hint in _PLAIN.items():
            _check(name, values[name], hint)
        for note in values["notes"]:
            _check("notes", note, str)
        if values["backend"] not in ("serial", "out_of_order", "lanes"):
            raise ValueError(f"backend: got {values['backend']!r}")
        if values["memory"] not in ("svm", "buffers") or values["lanes"] < 1:
            raise ValueError("memory or lanes out of range")
        return cls(**values)


_GAINS = ("lane_gains", "lane_slab_gains")
_PLAIN = {
    name: hint
    for name, hint in get_type_hints(Probe).items()
    if name not in _GAINS and name != "notes"
}


def _entries(name: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{name}: expected a list, got {type(value).__name__}")
    return value


def _gain(entry: object) -> Gain:
    if not isinstance(entry, dict) or set(entry) != set(Gain._fields):
        raise ValueError("not the fields of a gain")
    _check("lanes", entry["lanes"], int)
    _check("gain", entry["gain"], float)
    return Gain(entry["lanes"], entry["gain"])


def _check(name: str, value: object, hint: Any) -> None:
    # A bool is an int in Python; a count that says `true` is still a broken document.
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is int):
        raise ValueError(f"{name}: expected {hint}, got {type(value).__name__}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name}: {value} is no measurement")
