"""The record of a probe, and its conversion to JSON and back.

Input and output: values only. Invariant: ``from_json(to_json(p)) == p``. A document with a missing,
unknown or mistyped field is a ``ValueError``, never a half-filled probe.
"""

from __future__ import annotations

import math
from typing import Any, get_type_hints

from ...records import LANE_AFTER, LANE_NEW, NamedTuple, Report


class Gain(NamedTuple):
    """Speed-up of the same kernels on *lanes* in-order queues over one of these."""

    lanes: int
    gain: float


class Suited(NamedTuple):
    """Speed-up of launches in branches by a policy of lanes over the default."""

    after: str
    new: str
    gain: float


class Probe(NamedTuple):
    """Declarations and measurements of a device, and the choice of ``auto``.

    Figures are ``None`` if they were not measured. All clocks are the host's, except ``*_overlap``:
    kernels in flight on average, by the device's profiling intervals.
    """

    device: str
    driver: str
    kind: str
    compute_units: int
    # declared by the driver, or found by a test compile
    memory_model: str  # "c11" | "ptx" | "none"
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
    lane_policies: tuple[Suited, ...] = ()
    launch_us: float | None = None
    launch_with_event_us: float | None = None
    launch_out_of_order_us: float | None = None
    read_us: float | None = None
    read_p99_us: float | None = None
    notes: tuple[str, ...] = ()
    # the choice
    backend: str = "serial"  # "serial" | "out_of_order" | "lanes"
    lanes: int = 1
    lane_after: str = "tail"
    lane_new: str = "least"
    memory: str = "buffers"  # "svm" | "buffers"
    sentence: str = ""

    def to_json(self) -> Report:
        """Return plain values, one for each field."""
        document = self._asdict()
        for name in _LISTS:
            document[name] = [entry._asdict() for entry in document[name]]
        document["notes"] = list(self.notes)
        return document

    @classmethod
    def from_json(cls, document: object) -> Probe:
        """Return the probe that :meth:`to_json` wrote; ``ValueError`` for anything else."""
        if not isinstance(document, dict) or set(document) != set(cls._fields):
            raise ValueError("not the fields of a probe")
        values = dict(document)
        for name, kind in _LISTS.items():
            values[name] = tuple(_entry(kind, one) for one in _entries(name, values[name]))
        values["notes"] = tuple(_entries("notes", values["notes"]))
        for name, hint in get_type_hints(cls).items():
            if name not in _LISTS and name != "notes":
                _check(name, values[name], hint)
        for note in values["notes"]:
            _check("notes", note, str)
        if values["backend"] not in ("serial", "out_of_order", "lanes"):
            raise ValueError(f"backend: got {values['backend']!r}")
        if values["memory"] not in ("svm", "buffers") or values["lanes"] < 1:
            raise ValueError("memory or lanes out of range")
        if values["lane_after"] not in LANE_AFTER or values["lane_new"] not in LANE_NEW:
            raise ValueError(f"lanes: got {values['lane_after']!r}, {values['lane_new']!r}")
        return cls(**values)


_LISTS: dict[str, type[Gain | Suited]] = {
    "lane_gains": Gain, "lane_slab_gains": Gain, "lane_policies": Suited,
}  # fmt: skip


def _entries(name: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{name}: expected a list, got {type(value).__name__}")
    return value


def _entry(kind: type[Gain | Suited], entry: object) -> Gain | Suited:
    if not isinstance(entry, dict) or set(entry) != set(kind._fields):
        raise ValueError(f"not the fields of a {kind.__name__}")
    for name, hint in get_type_hints(kind).items():
        _check(name, entry[name], hint)
    return kind(**entry)


def _check(name: str, value: object, hint: Any) -> None:
    # A bool is an int in Python, but `true` as a count means a broken document.
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is int):
        raise ValueError(f"{name}: expected {hint}, got {type(value).__name__}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name}: {value} is no measurement")
