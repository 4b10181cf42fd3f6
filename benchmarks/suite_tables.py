"""Tables of what ``acs-cl bench`` measured: one run, two runs compared, many devices side by side.

In: documents as `suite.measure` makes them. Out: text for a terminal, or Markdown.

Invariant: what is missing is an empty cell, what failed says so; no figure is left out because it
is bad.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acs_cl.benchmarks.published import ACS, FAMILIES, GRCUDA, GRCUDA_MEAN
from acs_cl.benchmarks.suite import BARE, SERIAL, geomean

Document = Mapping[str, Any]

BEST_OF = ("auto", "lanes", "out_of_order", "device")
"""Ours, where one of them stands for all: `auto` if it was measured."""


def table(rows: Sequence[Sequence[Any]], head: Sequence[str], style: str = "simple") -> str:
    """Rows as text; the first column to the left, the others to the right."""
    from tabulate import tabulate

    align = ("left", *["right"] * (len(head) - 1))
    texts = [[_cell(value) for value in row] for row in rows]
    text: str = tabulate(texts, head, tablefmt=style, colalign=align, disable_numparse=True)
    return text


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:,.2f}"


def speedup(entry: Mapping[str, Any], name: str) -> float | str | None:
    """How many times faster than the baseline; 'failed', or None for what was not run."""
    if name in entry["failed"]:
        return "failed"
    row = entry["rows"].get(name)
    return None if row is None else float(row["speedup"]["median"])


def contestants(document: Document) -> list[str]:
    """All names, the baselines first."""
    names: dict[str, None] = dict.fromkeys((BARE, SERIAL))
    for entry in document["workloads"].values():
        names.update(dict.fromkeys([*entry["rows"], *entry["failed"]]))
    return list(names)


def overview(document: Document, style: str = "simple", only: Sequence[str] = ()) -> str:
    """Speed-ups of all contestants, or of some, with the bound and what was published."""
    names = list(only or contestants(document))
    head = ["workload", "launches", "groups", "baseline ms", "bound", *names, "paper SW", "HW"]
    rows = []
    for name, entry in document["workloads"].items():
        limits = entry["bound"]
        base = entry["rows"][entry["baseline"]]["ms"]["median"] if entry["rows"] else None
        most = base / limits["least_ms"] if base and limits["least_ms"] else None
        published = ACS.get(name, {})
        rows.append(
            [
                name,
                f"{limits['launches']}",
                f"{limits['groups'].get('median', 0):.0f}",
                base,
                most,
                *[speedup(entry, one) for one in names],
                published.get("ACS-SW"),
                published.get("ACS-HW"),
            ]
        )
    rows += _means(document, names)
    if not set(ACS) & set(document["workloads"]):
        head, rows = head[:-2], [row[:-2] for row in rows]
    return table(rows, head, style)


def _means(document: Document, names: Sequence[str]) -> list[list[Any]]:
    """Geometric means of the families that are there as a whole."""
    there = document["workloads"]
    rows: list[list[Any]] = []
    twelve = tuple(name for family in FAMILIES.values() for name in family)
    groups = {**FAMILIES, "all twelve": twelve, "GrCUDA's six": GRCUDA}
    for title, members in groups.items():
        if not set(members) <= set(there):
            continue
        row: list[Any] = [f"mean of {title}", None, None, None, None]
        for name in names:
            values = [speedup(there[member], name) for member in members]
            numbers = [value for value in values if isinstance(value, float)]
            row.append(geomean(numbers) if len(numbers) == len(members) else None)
        if members == GRCUDA:
            row += [GRCUDA_MEAN, None]
        else:
            row += [
                geomean([ACS[one][column] for one in members]) for column in ("ACS-SW", "ACS-HW")
            ]
        rows.append(row)
    return rows


def details(document: Document) -> str:
    """What the workloads consist of, and how near each contestant came to the bound."""
    names = contestants(document)
    head = ["workload", "edges", "depth", "limited by", "bound ms", "in flight"]
    head += [f"{name}: of bound" for name in names if name != BARE]
    rows = []
    for name, entry in document["workloads"].items():
        limits = entry["bound"]
        reached = [entry["rows"].get(one, {}).get("of_bound") for one in names if one != BARE]
        rows.append(
            [
                name,
                f"{limits['edges']}",
                f"{limits['depth']}",
                limits["limit"],
                limits["least_ms"],
                entry["overlap"],
                *[None if share is None else f"{share:.0%}" for share in reached],
            ]
        )
    return table(rows, head)


def failures(document: Document) -> list[str]:
    """What failed, a line each."""
    return [
        f"{workload}, {name}: {why}"
        for workload, entry in document["workloads"].items()
        for name, why in entry["failed"].items()
    ]


def footer(document: Document) -> str:
    """What it was measured on."""
    there = document["machine"]
    unrest = max(one["unrest"] for one in there["noise"])
    commit = f", commit {there['commit']}" if there["commit"] else ""
    return (
        f"{there['device']}, driver {there['driver']}, {there['compute_units']} compute units, "
        f"{there['cpus']} CPUs ({there['cpu']}), {there['date']}{commit}; "
        f"acs_cl {there['acs_cl']}, PyOpenCL {there['pyopencl']}, Python {there['python']}; "
        f"preset {document['preset']}, medians of {document['runs']} runs in turns, unrest of the "
        f"machine {unrest:.0%}"
    )


# ---- two runs ------------------------------------------------------------------------------------


def moved(old: Document, new: Document) -> list[list[Any]]:
    """What is faster or slower than before, beyond the spread of both: the quartiles of their
    speed-ups do not meet."""
    rows: list[list[Any]] = []
    for workload, entry in new["workloads"].items():
        before = old["workloads"].get(workload)
        if before is None:
            continue
        for name, row in entry["rows"].items():
            was = before["rows"].get(name)
            if was is None:
                continue
            one, other = was["speedup"], row["speedup"]
            if other["p25"] > one["p75"] or other["p75"] < one["p25"]:
                way = "faster" if other["median"] > one["median"] else "slower"
                rows.append([workload, name, one["median"], other["median"], way])
        for name in sorted(set(entry["failed"]) ^ set(before["failed"])):
            rows.append(
                [workload, name, None, None, "fails" if name in entry["failed"] else "runs"]
            )
    return rows


def comparison(old: Document, new: Document) -> str:
    """The same as a table."""
    rows = moved(old, new)
    if not rows:
        return "Nothing moved beyond the spread."
    return table(rows, ["workload", "contestant", "speed-up before", "now", ""])


# ---- many devices --------------------------------------------------------------------------------


def collected(documents: Sequence[Document]) -> str:
    """One table for all devices: of each family the mean speed-up of ours, in Markdown."""
    titles = [*FAMILIES, "pipelines"]
    rows = []
    for document in documents:
        there = document["machine"]
        row: list[Any] = [
            str(there["device"]).split(" / ")[-1],
            there["driver"],
            document["preset"],
        ]
        for title in titles:
            row.append(_of_family(document, title))
        unrest = max(one["unrest"] for one in there["noise"])
        row += [f"{unrest:.0%}", there["acs_cl"], there["date"]]
        rows.append(row)
    head = ["device", "driver", "preset", *titles, "unrest", "acs_cl", "date"]
    return table(rows, head, "github")


def _of_family(document: Document, family: str) -> float | str | None:
    """A mean over some members only says over how many."""
    values = []
    for entry in document["workloads"].values():
        if entry["family"] == family:
            ours = [speedup(entry, name) for name in BEST_OF]
            found = [value for value in ours if isinstance(value, float)]
            if not found:
                return None
            values.append(found[0])
    if not values:
        return None
    members = len(FAMILIES.get(family, GRCUDA))
    mean = geomean(values)
    return mean if len(values) == members else f"{mean:.2f} ({len(values)} of {members})"
