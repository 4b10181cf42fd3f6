"""The table of random, planted and observed tests, and their errors.

Input: the JSON files of `random_batches.py`, `make traps`, `proofs`, `signals`, `alarms` and
`seeing` in a folder of results. Output: Markdown, a row for each count. A missing file has no row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from acs_cl.benchmarks.figures.markdown import table
from acs_cl.benchmarks.suite import documents

KINDS = "random", "traps", "proofs", "signals", "alarms", "seeing"
"""Kinds of files, in the order of the table."""
RANDOM = {
    "pool": "random programs, bit by bit beside NumPy",
    "repeats": "random programs that nearly repeat their steps",
    "devices": "random programs on several devices",
    "bands": "random programs in bands",
    "loops": "random loops",
    "trees": "random trees of spawned items",
}
"""Parts of a file of random programs."""
INTEL = r"20\d\d\.\d+\.\d+\."
"""Versions of Intel's runtime, which has the names of other makers' processors, too."""

OPENS_S, MOST_BYTES = 2.0, 5_000_000

Document = Mapping[str, Any]


class Row(NamedTuple):
    """One count. `called`: the name of an error."""

    what: str
    tried: int
    wrong: int
    called: str


def block(results: Path) -> str:
    """Return the whole table."""
    heads = ["what", "tried", "wrong", "where and when"]
    rows, pages = [], []
    for kind in KINDS:
        for path in sorted(results.glob(f"{kind}*.json")):
            document = documents.read(path)
            about = _about(document)
            rows += [
                [row.what, f"{row.tried:,}", _wrong(row), about] for row in _rows(kind, document)
            ]
            pages += [_page(document)] if kind == "seeing" else []
    return "\n\n".join([table(heads, rows, "lrrl"), *pages])


def _wrong(row: Row) -> str:
    return f"**{row.wrong:,} {row.called}**" if row.wrong else "none"


def _about(document: Document) -> str:
    """Return the driver of a CPU, or the GPU. Empty: a file that needs no device."""
    whole = document.get("device", "")
    device = whole.rpartition(" / ")[2]
    driver = "PoCL" if device.startswith(("pthread-", "cpu-")) else device
    if whole.startswith("Intel") or re.match(INTEL, document.get("driver", "")):
        driver = "Intel's runtime"
    return ", ".join(filter(None, [driver, document.get("date", ""), document["commit"]]))


def _rows(kind: str, one: Document) -> Iterator[Row]:
    if kind == "random":
        for part, what in RANDOM.items():
            if part in one:
                bad = len(one[part]["wrong"]) + len(one[part]["died"])
                yield Row(what, one[part]["programs"], bad, "different or died")
    elif kind == "traps":
        tried = one["traps"] - one["skipped"]
        yield Row("hostile kernels, in every form", tried, len(one["wrong"]), "different")
    elif kind == "proofs":
        yield Row("random graphs, each proven", one["graphs"], len(one["refused"]), "refused")
        yield Row("faults planted in graphs", one["planted"], len(one["missed"]), "missed")
    elif kind == "signals":
        total = one["total"]
        bad = total["wrong"] + total["hangs"] + total["errors"]
        heard = f", heard within {total['slowest_s'] * 1e3:.0f} ms" if "slowest_s" in total else ""
        yield Row(f"Ctrl-C in calls that block{heard}", total["signals"], bad, "wrong or hung")
    elif kind == "alarms":
        what = f"tests under a watchdog of {one['seconds']:g} s"
        yield Row(what, one["tests"].get("passed", 0), len(one["alarms"]), "false alarms")
    elif kind == "seeing":
        for backend, counts in one["hangs"].items():
            bad = counts["planted"] - counts["named"]
            yield Row(f"hangs planted on `{backend}`", counts["planted"], bad, "not named")
        for counts in one["bottlenecks"].values():
            bad = counts["planted"] - counts["named"]
            yield Row("programs with a bottleneck", counts["planted"], bad, "not named first")


def _page(document: Document) -> str:
    """Return the properties of the page of a measured step, and their bars."""
    page = document["page"]
    missed = page["median_s"] >= OPENS_S or page["bytes"] >= MOST_BYTES
    return (
        f"The page of a step of {page['launches']:,} launches opens in {page['median_s']:.2f} s "
        f"(less than {OPENS_S:g} s) and has {page['bytes'] / 1e6:.2f} MB (less than "
        f"{MOST_BYTES / 1e6:g} MB){', **missed**' if missed else ''}; headless Chromium, median of "
        f"{len(page['opened_s'])}, {_about(document)}."
    )
