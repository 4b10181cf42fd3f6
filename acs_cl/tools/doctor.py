"""``acs-cl doctor``: every device, its measurements, and the choice of ``auto`` for it.

Input: the options ``device``, ``json`` and ``fresh``. Output: text or one JSON document on stdout,
and the exit code: 0 if a device works, else 1.

Invariant: text and document come from the same report. A device that cannot be measured is listed
with its error beside the others.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyopencl as cl

from acs_cl import core, devices
from acs_cl._version import __version__
from acs_cl.configuration import about_scheduler
from acs_cl.devices import probe
from acs_cl.errors import DeviceError, UsageError
from acs_cl.host.progress import Progress
from acs_cl.records import Report
from acs_cl.runtime import Runtime
from acs_cl.several.engine import SeveralEngine
from acs_cl.several.links import keep, links_of, measured
from acs_cl.several.policies import ASSUMED, Link


def main(args: argparse.Namespace) -> int:
    """Print the report; return the exit code."""
    say = Progress()
    try:
        report = examine(args.device, fresh=args.fresh, say=say)
    finally:
        say.end()
    print(json.dumps(report, indent=1) if args.json else text(report))
    return 0 if any("probe" in entry for entry in report["devices"]) else 1


def examine(
    spec: devices.Spec = None,
    *,
    fresh: bool = False,
    say: Callable[[str, float], None] = lambda text, share: None,
) -> dict[str, Any]:
    """Return the report as plain values: every device, or the one that *spec* names. `say` gets the
    progress."""
    there = devices.devices()
    report: Report = {
        "acs_cl": __version__,
        "pyopencl": cl.VERSION_TEXT,
        "core": core.ABOUT,
        "asked": None if spec is None else str(spec),
        "chosen": None,
        "devices": [],
    }
    try:
        chosen = devices.choose(spec)
    except DeviceError as error:
        report["error"] = str(error)
        return report
    report["chosen"] = devices.full_name(chosen)
    # Equal devices of one host share a key: they are measured once.
    known: dict[str, probe.Probe] = {}
    for index, device in enumerate(there):
        if spec is not None and device != chosen:
            continue
        entry = _declared(index, device, chosen=device == chosen)
        report["devices"].append(entry)
        key = devices.key(device)
        try:
            if key not in known:
                cached = None if fresh else probe.quick(device)
                if cached is not None:
                    probe.check_build(device)
                place, name = index / len(there), devices.full_name(device)

                def tell(what: str, share: float, place: float = place, name: str = name) -> None:
                    say(f"measuring {name}: {what}", place + share / len(there))

                known[key] = cached or probe.probe(device, fresh=True, say=tell)
        except DeviceError as error:
            entry["error"] = str(error)
        else:
            entry["probe"] = known[key].to_json()
            entry["scheduler"] = about_scheduler(known[key])
    if spec is None:
        report["links"] = _links(there, fresh, say)
    return report


def _links(there: list[cl.Device], fresh: bool, say: Callable[[str, float], None]) -> list[Report]:
    """Return the costs of copies between devices of one platform."""
    found: list[Report] = []
    for platform in dict.fromkeys(device.platform for device in there):
        several = [device for device in there if device.platform == platform]
        if len(several) < 2:
            continue
        try:
            links = links_between(several, fresh, partial(say, "measuring copies"))
        except (DeviceError, UsageError) as error:
            found.append({"platform": platform.name.strip(), "error": str(error)})
            continue
        for (source, target), link in links.items():
            found.append(
                {
                    "from": there.index(several[source]),
                    "to": there.index(several[target]),
                    "latency_us": link.latency_us,
                    "bytes_per_us": link.bytes_per_us,
                }
            )
    return found


def links_between(
    devices: Sequence[cl.Device], fresh: bool, say: Callable[[float], None] = lambda share: None
) -> dict[tuple[int, int], Link]:
    """Return the links between all pairs of devices, from the cache or measured by a runtime of all
    of them. `fresh`: measure in any case."""
    known = links_of(devices)
    pairs = [(i, j) for i in range(len(devices)) for j in range(len(devices)) if i != j]
    if not fresh and all(known[i][j] is not ASSUMED for i, j in pairs):
        return {(i, j): known[i][j] for i, j in pairs}
    with Runtime(devices=list(devices), placement="round_robin") as runtime:
        engine = runtime.engine
        assert isinstance(engine, SeveralEngine)
        with engine.lock:
            found = measured(engine.copies.copier, engine.store.stores, say)
    for (source, target), link in found.items():
        keep(devices[source], devices[target], link)
    return found


def text(report: Report) -> str:
    """Return the report as text."""
    from tabulate import tabulate  # only this command draws tables

    parts = [
        f"acs_cl {report['acs_cl']}, PyOpenCL {report['pyopencl']}, core: {report['core']}",
    ]
    if "error" in report:
        parts.append(report["error"])
    for entry in report["devices"]:
        mark = "  (taken by default)" if entry["chosen"] and report["asked"] is None else ""
        parts.append(f"\n[{entry['index']}] {entry['platform']} / {entry['device']}{mark}")
        units = entry["compute_units"]
        rows = [
            ("kind", f"{entry['kind']}, {units} compute unit{'s' * (units != 1)}"),
            ("memory", f"{entry['memory_bytes'] / 2**30:.1f} GiB"),
            ("version", entry["version"]),
            ("driver", entry["driver"]),
        ]
        if entry["repair"]:
            rows.append(("repaired", entry["repair"]))
        found = probe.Probe.from_json(entry["probe"]) if "probe" in entry else None
        rows += _rows(found) if found else [("not measured", entry["error"])]
        parts.append(tabulate(rows, tablefmt="plain", disable_numparse=True))
        if found:
            parts += found.sentence, entry["scheduler"]
    if report.get("links"):
        parts.append("\ncopies between devices")
        parts.append(tabulate([_link(one) for one in report["links"]], tablefmt="plain"))
    return "\n".join(parts)


def _link(one: Report) -> tuple[str, str]:
    if "error" in one:
        return one["platform"], f"not measured: {one['error']}"
    return (
        f"[{one['from']}] to [{one['to']}]",
        f"{_us(one['latency_us'])}, then {one['bytes_per_us'] / 1e3:.2f} GB/s",
    )


def _declared(index: int, device: cl.Device, *, chosen: bool) -> Report:
    return {
        "index": index,
        "platform": device.platform.name.strip(),
        "device": device.name.strip(),
        "kind": devices.kind(device),
        "version": device.version.strip(),
        "driver": device.driver_version.strip(),
        "compute_units": device.max_compute_units,
        "memory_bytes": device.global_mem_size,
        "chosen": chosen,
        "repair": devices.repair(device),
    }


def _rows(found: probe.Probe) -> list[tuple[str, str]]:
    lanes = ", ".join(f"{gain.lanes}: {gain.gain:.2f}x" for gain in found.lane_gains)
    slabs = ", ".join(f"{gain.lanes}: {gain.gain:.2f}x" for gain in found.lane_slab_gains)
    rows = [
        ("measured", f"{found.measured_on}, in {found.took_s:.1f} s"),
        ("out of order", _single(found)),
        ("in-order queues", f"{lanes or 'not measured'}{_overlap(found.lane_overlap)}"),
        ("same, in a slab", slabs or "not measured"),
        ("branches", probe.about_policy(found)),
        (
            "launch",
            f"{_us(found.launch_us)} in order, {_us(found.launch_with_event_us)} with an event, "
            f"{_us(found.launch_out_of_order_us)} out of order",
        ),
        (
            "launch and read",
            f"{_us(found.read_us)} for 4 bytes, 99th percentile {_us(found.read_p99_us)}",
        ),
        ("memory model", found.memory_model),
        ("a group may poll", f"{_yes(found.may_poll)} ({found.may_poll_note})"),
        ("argument info", _yes(found.argument_info)),
        ("SVM", found.svm),
        ("command buffers", _yes(found.command_buffers)),
        ("sub-buffers", f"aligned to {found.sub_buffer_align_bytes} bytes"),
    ]
    return rows + [("note", note) for note in found.notes]


def _single(found: probe.Probe) -> str:
    if not found.out_of_order_accepted:
        return "refused by the driver"
    if found.out_of_order_gain is None:
        return "not measured"
    slab = found.out_of_order_slab_gain
    in_slab = f", {slab:.2f}x in a slab" if slab is not None else ""
    return f"{found.out_of_order_gain:.2f}x{in_slab}{_overlap(found.out_of_order_overlap)}"


def _overlap(value: float | None) -> str:
    return "" if value is None else f" ({value:.2f} kernels in flight by the device's clock)"


def _us(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.1f} us"


def _yes(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "not tried"}[value]
