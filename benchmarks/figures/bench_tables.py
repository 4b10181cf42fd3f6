"""Tables of the results of ``acs-cl bench``: one run, and many devices side by side.

Input: documents as `contest.measure` makes them. Output: text for a terminal, or Markdown.

Invariant: a missing figure is an empty cell, and a failure says so. No figure is left out because
it is bad.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acs_cl.benchmarks.peers.published import ACS, FAMILIES, GRCUDA, GRCUDA_MEAN, TWELVE
from acs_cl.benchmarks.suite import documents
from acs_cl.benchmarks.suite.contestants import BARE, EXPERT, SERIAL, best_expert
from acs_cl.benchmarks.suite.statistics import geomean

Document = Mapping[str, Any]

BEST_OF = ("auto", "lanes", "out_of_order", "device")
"""Our backends, of which one may stand for all: `auto` if it was measured."""


BUSY = 0.5
"""Machine noise above which figures say little."""


def table(
    rows: Sequence[Sequence[Any]], head: Sequence[str], style: str = "simple", wide: int = 0
) -> str:
    """Format rows as text. The first column and the last `wide` ones are aligned to the left, the
    others to the right."""
    from tabulate import tabulate

    align = ("left", *["right"] * (len(head) - 1 - wide), *["left"] * wide)
    texts = [[_cell(value) for value in row] for row in rows]
    text: str = tabulate(texts, head, tablefmt=style, colalign=align, disable_numparse=True)
    return text


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:,.2f}"


def speedup(entry: Mapping[str, Any], name: str, of: str = "speedup") -> float | str | None:
    """Return how many times faster than the baseline it is; 'failed', or None: it was not run, or
    has not this figure of its row."""
    if name in entry["failed"]:
        return "failed"
    shown = best_expert(entry["rows"]) if name == EXPERT else name
    row = entry["rows"].get(shown)
    return float(row[of]["median"]) if row and of in row else None


def mean_of(
    document: Document, members: Sequence[str], name: str, of: str = "speedup"
) -> float | None:
    """Return the geometric mean of their speed-ups, if all of them were measured."""
    there = document["workloads"]
    values = [speedup(there[member], name, of) for member in members if member in there]
    numbers = [value for value in values if isinstance(value, float)]
    return geomean(numbers) if len(numbers) == len(members) else None


def contestants(document: Document) -> list[str]:
    """Return all names, the baselines first. Of the expert's attempts only the best is there, or
    the failed ones."""
    names: dict[str, None] = {}
    for entry in document["workloads"].values():
        rows = [name for name in entry["rows"] if not name.startswith(f"{EXPERT}, ")]
        names.update(dict.fromkeys([*rows, *entry["failed"]]))
    return sorted(names, key=(BARE, SERIAL, *names).index)


def overview(document: Document, style: str = "simple", only: Sequence[str] = ()) -> str:
    """Return speed-ups of all contestants, or of some, with the bound and the published figures."""
    names = list(only or contestants(document))
    head = ["workload", "launches", "groups", "baseline ms", "bound", *names, "paper SW", "HW"]
    rows = []
    for name, entry in document["workloads"].items():
        limits = entry["bound"]
        base = entry["rows"][entry["baseline"]]["ms"]["median"] if entry["rows"] else None
        least_ms = bound_ms(entry)
        most = base / least_ms if base and isinstance(least_ms, float) else least_ms
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
    """Return geometric means of the complete families."""
    there = document["workloads"]
    rows: list[list[Any]] = []
    groups = {**FAMILIES, "all twelve": TWELVE, "GrCUDA's six": GRCUDA}
    for title, members in groups.items():
        if not set(members) <= set(there):
            continue
        row: list[Any] = [f"mean of {title}", None, None, None, None]
        row += [mean_of(document, members, name) for name in names]
        if members == GRCUDA:
            row += [GRCUDA_MEAN, None]
        else:
            row += [
                geomean([ACS[one][column] for one in members]) for column in ("ACS-SW", "ACS-HW")
            ]
        rows.append(row)
    return rows


def contenders(document: Document) -> str:
    """Return every contestant of every workload: times, their spread, and costs of launches."""
    head = ["workload", "contestant", "ms", "behind another", "speed-up", "quartiles"]
    head += ["of bound", "over expert", "host us/launch", "launches/s"]
    rows = []
    for workload, entry in document["workloads"].items():
        for name, row in entry["rows"].items():
            found = row["speedup"]
            rows.append(
                [
                    workload,
                    name,
                    row["ms"]["median"],
                    row.get("behind_ms", {}).get("median"),
                    found["median"],
                    f"{found['p25']:.2f} to {found['p75']:.2f}",
                    of_bound(entry, name),
                    over_expert(entry, name),
                    row["host_us_per_launch"],
                    f"{row['launches_per_s']:,.0f}",
                ]
            )
        rows += [[workload, name, "failed", *[None] * 7] for name in entry["failed"]]
    return table(rows, head)


def over_expert(entry: Mapping[str, Any], name: str) -> float | None:
    """Return how many times faster it is than the expert's best, interleaved in the same run."""
    best = best_expert(entry["rows"])
    if best is None or name.startswith(EXPERT):
        return None
    return float(entry["rows"][best]["ms"]["median"] / entry["rows"][name]["ms"]["median"])


NO_BOUND, REFUTED = "not measured", "refuted"
EMPTY = "none"  # no kernel of it takes longer than an empty one


def bound_ms(entry: Mapping[str, Any]) -> float | str:
    """Return the bound, or why there is none: old results lack one that holds with free launches,
    and a measurement may have been faster."""
    limits = entry["bound"]
    if "empty_us" not in limits:
        return NO_BOUND
    if limits["least_ms"] is None:
        return REFUTED
    return float(limits["least_ms"]) or EMPTY


def of_bound(entry: Mapping[str, Any], name: str) -> float | None:
    """Return the share of the bound that a contestant reaches. None: no bound."""
    least_ms = bound_ms(entry)
    took_ms = entry["rows"][name]["ms"]["median"]
    return least_ms / took_ms if isinstance(least_ms, float) else None


def details(document: Document) -> str:
    """Return the contents of the workloads, and their bounds."""
    head = ["workload", "edges", "depth", "groups: 10 %", "half", "90 %", "below device"]
    head += ["critical path ms", "work ms", "limited by", "in flight"]
    rows = []
    for name, entry in document["workloads"].items():
        limits = entry["bound"]
        groups = limits["groups"]
        smaller = groups.get("smaller_than_device")
        rows.append(
            [
                name,
                f"{limits['edges']}",
                f"{limits['depth']}",
                *[f"{groups.get(share, 0):.0f}" for share in ("p10", "median", "p90")],
                None if smaller is None else f"{smaller:.0%}",
                limits["critical_ms"],
                limits["work_ms"],
                limits["limit"],
                entry["overlap"],
            ]
        )
    return table(rows, head)


def failures(document: Document) -> list[str]:
    """Return the failures, a line each."""
    return [
        f"{workload}, {name}: {why}"
        for workload, entry in document["workloads"].items()
        for name, why in entry["failed"].items()
    ]


def footer(document: Document) -> str:
    """Return the machine and the commits."""
    there = document["machine"]
    told = there.get("environment", {}).items()
    environment = "".join(f", {name}={value}" for name, value in sorted(told))
    left = ", ".join(document.get("left_out", ()))
    without = f"; left out for want of time: {left}" if left else ""
    return (
        f"{documents.described(there)}{environment}; acs_cl {there['acs_cl']}; "
        f"preset {document['preset']}, medians of {_samples(document)} interleaved runs{without}. "
        f"{_runs(document)}."
    )


def warning(document: Document) -> str:
    """Say that the machine was too busy to measure on. Empty: it was not."""
    entries = document["workloads"].values()
    worst = max((documents.run_of(document, entry).unrest for entry in entries), default=0.0)
    if worst <= BUSY:
        return ""
    return f"the machine was busy (noise of {worst:.0%}): measure again when it is quiet"


def _samples(document: Document) -> str:
    """Return the number of runs of each median."""
    entries = document["workloads"].values()
    counts = {row["ms"]["samples"] for entry in entries for row in entry["rows"].values()}
    return " or ".join(map(str, sorted(counts))) or "no"


def _runs(document: Document) -> str:
    """Return dates and commits of the runs; each with its workloads if there are several."""
    runs: dict[documents.Run, list[str]] = {}
    for name, entry in document["workloads"].items():
        runs.setdefault(documents.run_of(document, entry), []).append(name)
    if len(runs) == 1:
        return str(next(iter(runs)))
    return "; ".join(f"{run}: {', '.join(names)}" for run, names in runs.items())


# ---- many devices --------------------------------------------------------------------------------


def collected(documents: Sequence[Document]) -> str:
    """Return one table for all devices, in Markdown: our mean speed-up in each family."""
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
    head = ["device", "driver", "preset", *titles, "noise", "acs_cl", "date"]
    return table(rows, head, "github")


def _of_family(document: Document, family: str) -> float | str | None:
    """Return a family's mean. If it has only some members, it says how many."""
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
