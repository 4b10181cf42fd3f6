"""Take new results into the committed ones, and write the pages anew.

    python -m acs_cl.benchmarks.merge NEW.json ... [--several-commits]

In: documents as `run.py --json` and `acs-cl bench --json` write them. Out: the file of the same
kind, device and driver in `benchmarks/results/` with their parts in place of its own, or a new
file; then every generated block.

Figures of different sources side by side look like one measurement. So this refuses results of no
commit, and refuses a file whose parts would be of several commits unless that was asked for. Then
each part keeps the run that it is of, and the tables show it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from acs_cl.benchmarks import documents, report
from acs_cl.benchmarks.documents import PARTS, SUITE, Document, ResultError, kind_of, parts_of
from acs_cl.benchmarks.provenance import CHANGED

ALIKE = ("preset", "seed")
"""Of workloads: what differs in these is another measurement."""


def merged(old: Document | None, new: Sequence[tuple[str, Document]], several: bool) -> Document:
    """One document: the old one's parts, replaced by the new ones'. `new`: by file name."""
    for name, document in new:
        _check(name, document)
    first = old if old is not None else new[0][1]
    parts: dict[str, dict[str, object]] = {}
    given: dict[str, str] = {}
    for name, document in [("", old), *new] if old is not None else new:
        assert document is not None
        _check_alike(name, first, document)
        for part, result in parts_of(document).items():
            if name and part in given:
                raise ResultError(f"{name}: {part} is in {given[part]}, too")
            if name:
                given[part] = name
            parts[part] = result | {"run": documents.run_of(document, result)._asdict()}
    whole = {**new[-1][1], PARTS[kind_of(first)]: parts}
    if kind_of(first) == SUITE:
        whole["left_out"] = [name for name in first.get("left_out", ()) if name not in parts]
    _check_commits(whole, several)
    return whole


def _check(name: str, document: Document) -> None:
    """That a new document has figures, all of them of a commit."""
    documents.checked(document, name)
    for part, result in parts_of(document).items():
        run = documents.run_of(document, result)
        if not run.commit or CHANGED in run.commit:
            raise ResultError(f"{name}: {part} is of no commit: {run.commit or 'not known'!r}")


def _check_alike(name: str, first: Document, document: Document) -> None:
    """That both are of one kind, device and driver, and measured in the same way."""
    if kind_of(first) != kind_of(document):
        raise ResultError(f"{name}: expected {kind_of(first)}, got {kind_of(document)}")
    ours, theirs = documents.where(first["machine"]), documents.where(document["machine"])
    if ours != theirs:
        raise ResultError(f"{name}: of {', '.join(theirs)}, expected {', '.join(ours)}")
    for key in ALIKE:
        if first.get(key) != document.get(key):
            raise ResultError(f"{name}: {key} {document.get(key)}, expected {first.get(key)}")


def _check_commits(document: Document, several: bool) -> None:
    """That all parts are of one tree, unless several were asked for."""
    trees: dict[tuple[str, str], list[str]] = {}
    for part, result in parts_of(document).items():
        run = documents.run_of(document, result)
        trees.setdefault((run.commit, run.sources), []).append(part)
    if len(trees) > 1 and not several:
        said = "; ".join(f"{commit}: {', '.join(parts)}" for (commit, _), parts in trees.items())
        raise ResultError(f"parts of several trees, and no --several-commits: {said}")


def place_of(document: Document, results: Path) -> Path:
    """The committed file of the same kind, device and driver; or where a new one goes."""
    kind, there = kind_of(document), documents.where(document["machine"])
    for name, old in documents.of_kind(results, kind).items():
        if documents.where(old["machine"]) == there:
            return results / name
    slug = re.sub(r"\W+", "-", documents.short_name(document["machine"]).lower()).strip("-")
    return results / f"{'bench-' if kind == SUITE else ''}{slug}.json"


def take(new: Mapping[str, Document], results: Path, several: bool) -> list[Path]:
    """Take all of these in; the files that were written. With an error nothing is written."""
    by_place: dict[Path, list[tuple[str, Document]]] = {}
    for name, document in new.items():
        by_place.setdefault(place_of(document, results), []).append((name, document))
    whole = {}
    for path, some in by_place.items():
        old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        whole[path] = merged(old, some, several)
    for path, document in whole.items():
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return list(whole)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks/merge.py", description=__doc__.split("\n")[0])
    parser.add_argument("new", nargs="+", type=Path, metavar="NEW.json")
    parser.add_argument(
        "--several-commits", action="store_true", help="each part keeps its own, and tables show it"
    )
    parser.add_argument("--root", type=Path, default=report.ROOT, metavar="FOLDER")
    parser.add_argument("--results", type=Path, default=report.RESULTS, metavar="FOLDER")
    args = parser.parse_args(argv)
    try:
        new = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in args.new}
        written = take(new, args.results, args.several_commits)
        written += report.write(args.root, args.results)
    except (ResultError, OSError, ValueError) as error:
        print(f"merge: {error}", file=sys.stderr)
        return 1
    for path in written:
        print(path.name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
