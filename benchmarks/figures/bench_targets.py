"""Bars of the workloads, beside the results of one run.

Input: a document as `contest.measure` makes it. Output: `Target` rows, and a table of them, which
names every workload that falls short, with its figure and the quartiles of its runs.

On a CPU device, preset `small`, each workload counts by itself: its share of the bound, and that it
is not slower than the baseline. On a GPU, preset `paper`, means of families count, beside published
ones. On all devices the best of the host's backends is compared with the expert's version. If
decisions depend on the input, they also run as the expert's do, decided by the host.

Invariant: medians are compared with the limits as they are; quartiles are for the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from acs_cl.benchmarks.figures.bench_tables import (
    REFUTED,
    Document,
    bound_ms,
    mean_of,
    of_bound,
    over_expert,
    table,
)
from acs_cl.benchmarks.peers.published import ACS, FAMILIES, GRCUDA, GRCUDA_MEAN, TWELVE
from acs_cl.benchmarks.suite.contestants import BY_HOST, LATER, LATER_S, ON_HOST, REPLAY
from acs_cl.benchmarks.suite.statistics import geomean

BOUND, LEAST_OF_BOUND = "share of the bound", 0.85
WITHIN = 1.1
"""Most times of the expert's time."""
LEAST_OF_ALL, AIM_OF_ALL, LEAST_OF_RIGID = 1.56, 3.0, 5.0
LEAST_RESIDENT = 0.5
"""Least share of the groups that run at once: a kernel that halves them should stay on lanes."""
SHORT_US = 20.0
"""Up to this length of kernels, the device's own scheduler has to be faster than the expert."""

HOW = {
    LATER: f", after {LATER_S:g} s of steps",
    REPLAY: ", recorded once and not built anew",
}
ON_DEVICE = ("device", "auto")
ANEW = (*ON_HOST, *ON_DEVICE)
"""Our contestants that launch each graph anew."""


class Target(NamedTuple):
    """`values` and their quartiles, if there are any, by their names: one or many."""

    what: str
    least: float
    values: Mapping[str, float]
    quartiles: Mapping[str, tuple[float, float]]

    @property
    def short(self) -> list[str]:
        """Return the names that fall short of it, the worst first."""
        there = (name for name, value in self.values.items() if value < self.least)
        return sorted(there, key=self.values.__getitem__)


def targets(document: Document) -> list[Target]:
    """Return the targets of this device and preset for which everything was measured."""
    kind, preset = document["machine"].get("kind"), document["preset"]
    found: list[Target] = []
    if kind == "CPU" and preset == "small":
        found += _of_each(document)
    if kind == "GPU" and preset == "paper":
        found += _of_families(document)
    what = "over the expert's, the best of the host's backends"
    host = (*ON_HOST, *BY_HOST.values())
    found.append(_target(document, what, 1 / WITHIN, host, over_expert))
    if kind == "GPU":
        what = f"over the expert's, kernels below {SHORT_US:.0f} us, the better of `device`, `auto`"
        found.append(_target(document, what, 1.0, ON_DEVICE, over_expert, _is_short))
    return [one for one in found if one.values or one.what.startswith(BOUND)]


def _of_each(document: Document) -> list[Target]:
    def faster(entry: Mapping[str, Any], name: str) -> float | None:
        return float(entry["rows"][name]["speedup"]["median"])

    refuted = [name for name, entry in document["workloads"].items() if bound_ms(entry) == REFUTED]
    share = f"{BOUND} (refuted: {', '.join(refuted)})" if refuted else BOUND
    return [
        _target(document, f"{what}, {title}", least, names, of)
        for what, least, of in (
            (share, LEAST_OF_BOUND, of_bound),
            ("over the baseline", 1.0, faster),
        )
        for title, names in (("the best of ours", ANEW), ("`auto`", ("auto",)))
    ]


def _of_families(document: Document) -> list[Target]:
    wanted: list[tuple[str, float, Sequence[str]]] = [
        ("all twelve, the paper's headline", LEAST_OF_ALL, TWELVE),
        ("all twelve, the aim", AIM_OF_ALL, TWELVE),
        ("rigid bodies", LEAST_OF_RIGID, FAMILIES["rigid"]),
    ]
    for family in ("dynamic", "static"):
        columns = zip(*(ACS[name].values() for name in FAMILIES[family]), strict=True)
        best = round(max(geomean(column) for column in columns), 2)
        wanted.append((f"{family} networks, the paper's best column", best, FAMILIES[family]))
    wanted.append(("GrCUDA's six, its published mean", GRCUDA_MEAN, GRCUDA))
    found = []
    for title, least, members in wanted:
        for name in ("auto", LATER, REPLAY):
            for of, where in (("speedup", ""), ("behind_speedup", ", behind other contestants")):
                mean = mean_of(document, members, name, of)
                if mean is not None:
                    value = {f"`{name}`": round(mean, 3)}
                    how = HOW.get(name, "") + where
                    found.append(Target(f"mean of {title}, `{name}`{how}", least, value, {}))
    return [*found, *_residency(document)]


def _residency(document: Document) -> list[Target]:
    """Return the resident groups of each workload's schedulers, as a share of the largest number
    for the same group size here. Needs a device that tells registers."""
    there: list[tuple[str, int, int]] = []
    for workload, entry in document["workloads"].items():
        for where in entry["where"].values():
            for one in where.get("scheduler", {}).get("schedulers", ()):
                if one["registers"]:
                    there.append((workload, one["group"], one["resident_groups"]))
    most = {group: max(n for _, g, n in there if g == group) for _, group, _ in there}
    values: dict[str, float] = {}
    for workload, group, resident in there:
        share = round(resident / most[group], 3)
        values[workload] = min(values.get(workload, share), share)
    what = "residency of a workload's scheduler, over the most of any"
    return [Target(what, LEAST_RESIDENT, values, {})]


def _target(
    document: Document,
    what: str,
    least: float,
    names: Sequence[str],
    of: Callable[[Mapping[str, Any], str], float | None],
    counts: Callable[[Mapping[str, Any]], bool] = lambda entry: True,
) -> Target:
    """Return the largest value of these contestants, for each workload that counts."""
    values: dict[str, float] = {}
    quartiles: dict[str, tuple[float, float]] = {}
    for workload, entry in document["workloads"].items():
        found = {name: of(entry, name) for name in names if name in entry["rows"]}
        there = {name: value for name, value in found.items() if value is not None}
        if there and counts(entry):
            best = max(there, key=there.__getitem__)
            values[workload] = round(there[best], 3)
            around = entry["rows"][best]["speedup"]
            low, high = (there[best] * around[end] / around["median"] for end in ("p25", "p75"))
            quartiles[workload] = low, high
    return Target(what, least, values, quartiles)


def _is_short(entry: Mapping[str, Any]) -> bool:
    """Tell whether its kernels are short, on average."""
    limits = entry["bound"]
    return bool(limits["busy_ms"] * 1e3 < SHORT_US * limits["launches"])


def text(document: Document, style: str = "simple") -> str:
    """Return a table. Empty: there are no targets."""
    rows = []
    for one in targets(document):
        if not one.values:
            rows.append([one.what, one.least, None, None, "not measured"])
            continue
        worst = min(one.values.values())
        met = len(one.values) - len(one.short)
        rows.append(
            [
                one.what,
                one.least,
                worst,
                f"{met} of {len(one.values)}" if len(one.values) > 1 else None,
                ", ".join(_shown(one, name) for name in one.short) or "met",
            ]
        )
    head = ["what has to be reached", "at least", "least", "reached by", "short of it"]
    return table(rows, head, style, wide=1) if rows else ""


def _shown(one: Target, name: str) -> str:
    value = f"{one.values[name]:.2f}"
    if name not in one.quartiles:
        return f"{name} {value}"
    low, high = one.quartiles[name]
    return f"{name} {value} ({low:.2f} to {high:.2f})"
