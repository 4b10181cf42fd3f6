"""Tables of several devices: programs beside one device, and copies between two.

Input: `results/devices-*.json` (`benchmarks devices --out`). Output: Markdown. What misses its bar
is bold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from acs_cl.benchmarks.figures.markdown import table
from acs_cl.benchmarks.suite import documents

LEAST = {
    **{(name, 2): 1.8 for name in ("jacobi", "product", "black_scholes", "bodies")},
    **{(name, 4): 3.4 for name in ("jacobi", "product", "black_scholes", "bodies")},
    **{(name, 2): 1.5 for name in ("conjugate_gradients", "sparse")},
}
"""By program and number of devices: how many times as fast it has to be."""
ANY = 0.98
"""The same for all others."""
MOST_US, LEAST_GB_S = {4 << 10: 30.0}, {64 << 20: 45.0, 256 << 20: 45.0}
"""Bars of copies, by bytes."""

Document = Mapping[str, Any]


def block(results: Path) -> str:
    """Write all tables of a folder of results."""
    paths = sorted(results.glob("devices-*.json"))
    found = [part for path in paths for part in _of(documents.read(path))]
    return "\n\n".join(found) or "No results are committed yet."


def _of(document: Document) -> Iterator[str]:
    rows = [_row(one) for one in document["programs"]]
    heads = [
        *("program", "devices", "one, ms a step", "all, ms a step", "times", "at best"),
        *("has to be", "MiB moved a step"),
    ]
    yield table(heads, rows)
    yield table(
        ["bytes", "us", "GB/s", "has to be"], [_copy(one) for one in document["copies"]], "rrrl"
    )
    where = document["machine"]
    yield (
        f"{where['device']}, driver {where['driver']}: {where['date']}, commit {where['commit']}. "
        f"Programs ran for {document['warm_s']:g} s first; medians of {document['samples']} "
        "interleaved samples, with their quartiles."
    )


def _row(one: Document) -> list[str]:
    least = LEAST.get((one["program"], one["devices"]), ANY)
    times = f"{one['times']:.2f}x"
    if one["times"] < least:
        times = f"**{times}**"
    steps = one["steps_between_waits"] * one.get("samples", 1)
    moved = one["bytes_timed"] / steps / (1 << 20)
    return [
        one["program"], str(one["devices"]), _took(one, "one"), _took(one, "all"), times,
        f"{one['times_at_best']:.2f}x", f"at least {least}x", f"{moved:.3f}",
    ]  # fmt: skip


def _took(one: Document, which: str) -> str:
    """Write a median with its quartiles."""
    middle = f"{one[f'{which}_ms']:.3f}"
    least, most = one[f"{which}_quartiles_ms"]
    return f"{middle} ({least:.3f} to {most:.3f})"


def _copy(one: Document) -> list[str]:
    nbytes, us, rate, bar = one["bytes"], one["there_us"], one["there_GB_s"], ""
    shown = [f"{us:,.1f}", f"{rate:.1f}"]
    if most := MOST_US.get(nbytes):
        bar = f"at most {most:g} us"
        shown[0] = f"**{shown[0]}**" if us > most else shown[0]
    if least := LEAST_GB_S.get(nbytes):
        bar = f"at least {least:g} GB/s"
        shown[1] = f"**{shown[1]}**" if rate < least else shown[1]
    return [f"{nbytes:,}", *shown, bar]
