"""Take new results into the committed ones, and write the pages anew.

    python -m acs_cl.benchmarks merge NEW.json ... [--several-commits]

Input: documents as `run.py --json` and `acs-cl bench --json` write them. Output: the file of the
same kind, device and driver in `benchmarks/results/`, with their parts replacing its own, or a new
file; then every generated block.

`suite.joining` has the rules of joining.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from acs_cl.benchmarks.figures import report
from acs_cl.benchmarks.suite import documents
from acs_cl.benchmarks.suite.documents import SUITE, Document, ResultError, kind_of
from acs_cl.benchmarks.suite.joining import merged


def place_of(document: Document, results: Path) -> Path:
    """Return the committed file of the same kind, device and driver, or the path of a new one."""
    kind, there = kind_of(document), documents.where(document["machine"])
    for name, old in documents.of_kind(results, kind).items():
        if documents.where(old["machine"]) == there:
            return results / name
    slug = re.sub(r"\W+", "-", documents.short_name(document["machine"]).lower()).strip("-")
    return results / f"{'bench-' if kind == SUITE else ''}{slug}.json"


def take(new: Mapping[str, Document], results: Path, several: bool) -> list[Path]:
    """Take all documents in; return the written files. After an error nothing is written."""
    by_place: dict[Path, list[tuple[str, Document]]] = {}
    for name, document in new.items():
        by_place.setdefault(place_of(document, results), []).append((name, document))
    whole = {}
    for path, some in by_place.items():
        old = documents.read(path) if path.exists() else None
        whole[path] = merged(old, some, several)
    for path, document in whole.items():
        documents.write(path, document)
    return list(whole)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks merge", description=__doc__.split("\n")[0])
    parser.add_argument("new", nargs="+", type=Path, metavar="NEW.json")
    parser.add_argument(
        "--several-commits", action="store_true", help="each part keeps its own, and tables show it"
    )
    parser.add_argument("--root", type=Path, default=report.ROOT, metavar="FOLDER")
    parser.add_argument("--results", type=Path, default=report.RESULTS, metavar="FOLDER")
    args = parser.parse_args(argv)
    try:
        new = {path.name: documents.read(path) for path in args.new}
        written = take(new, args.results, args.several_commits)
        written += report.write(args.root, args.results)
    except (ResultError, OSError, ValueError) as error:
        print(f"merge: {error}", file=sys.stderr)
        return 1
    for path in written:
        print(path.name)
    return 0
