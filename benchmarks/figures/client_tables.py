"""Tables of docs/measurements/clients.md: packages on acs.Queue, their tests and a program of each.

Input: `clients.json` of the results, as `tests/clients.py` writes it. Output: Markdown.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from acs_cl.benchmarks.figures.markdown import table
from acs_cl.benchmarks.suite import documents

Record = dict[str, Any]


def tests(results: Path) -> str:
    """Return the block with the packages' tests."""
    return tests_table(_read(results))


def speed(results: Path) -> str:
    """Return the block with the packages' benchmarks."""
    return speed_table(_read(results))


def tests_table(record: Record) -> str:
    """Return how tests ended, and the ones that ended differently."""
    said: dict[str, None] = {}
    rows: list[list[str]] = []
    notes: list[str] = []
    for name, one in record["clients"].items():
        if "missing" in one:
            notes += ["", f"{name} is not in the table: {one['missing']}."]
        if "tests" not in one:
            continue
        found = one["tests"]
        about = found["with"]
        said[
            f"{about['device']}: PyOpenCL {about['pyopencl']}, acs_cl {about['acs_cl']}, "
            f"Python {about['python']}"
        ] = None
        rows.append(
            [f"{name} {found['version']}", found["date"], _short(about["device"]),
             f"{found['limit_s']:.0f} s",
             _counts(found["plain"]), _counts(found["acs.Queue"]), _different(found["different"]),
             f"{len(found['passed on neither'])}"]
        )  # fmt: skip
        if found.get("without"):
            notes += ["", f"Of {name} not all: {found['without']}."]
        for test, why in found.get("left out", {}).items():
            notes += ["", f"Left out of {name}: `{test}`, since {why}, on its own queue too."]
        if "checked" in one:
            notes += ["", _checked(name, one["checked"])]
    suites = "; ".join(
        f"{name}: {', '.join(one['tests']['suites'])}"
        for name, one in record["clients"].items()
        if "tests" in one
    )
    heads = ["package", "date", "device", "limit of a file", "own queue", "acs.Queue", "different"]
    shown = table([*heads, "on neither"], rows, "lllrlllr")
    return "\n".join([f"{'; '.join(said)}.", "", shown, *notes, "", f"Files: {suites}."])


def speed_table(record: Record) -> str:
    """Return medians of both queues for each program, and whether the results are the same."""
    heads = ["program", "device", "own queue, ms", "acs.Queue, ms", "speed", "results", "rounds"]
    rows: list[list[str]] = []
    for name, one in record["clients"].items():
        for device, measured in one.get("speed", {}).items():
            for run, sides in measured["runs"].items():
                ours = sides["auto"]
                counts = ours["counts"]
                rows.append(
                    [f"{name}: {run}", device, f"{sides['plain']['median_ms']:.1f}",
                     f"{ours['median_ms']:.1f}", f"{ours['speed']:.2f}x", _same(ours),
                     "before others" if measured.get("before_others") else "as they came",
                     *(f"{counts.get(how, 0):.0f}" for how in ("tracked", "bypassed"))]
                )  # fmt: skip
    return table([*heads, "tracked", "bypassed"], rows, "llrrrllrr")


def _short(device: str) -> str:
    """Return a device's name without its platform and driver."""
    return device.split(" / ")[-1].rsplit(", ", 1)[0]


def _same(ours: Record) -> str:
    return "same bits" if ours["same_bits"] else f"within {ours['distance']:.0e}"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {how}" for how, count in sorted(counts.items())) or "none"


def _different(different: dict[str, list[str]]) -> str:
    return "; ".join(f"`{test}`: {', '.join(how)}" for test, how in different.items()) or "none"


def _checked(name: str, found: Record) -> str:
    failed = ", ".join(f"`{test}`" for test in found["failed"])
    looked = found["looked at"]
    ended = _counts(found["acs.Queue"])
    return (
        f"{name} on acs.Queue with `ACS_CL_CHECK={found['checks']}`: {ended}; "
        f"{looked.get('launches', 0):,} launches of {looked.get('kernels', 0):,} kernels, accused: "
        f"{looked.get('found', 0)}; failed though right on its own queue: {failed or 'none'}."
    )


def _read(results: Path) -> Record:
    record: Record = documents.read(results / "clients.json")
    return record
