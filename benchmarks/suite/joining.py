"""Join documents of one kind, device and driver into one.

Figures of different sources side by side look like one measurement. So `merged` refuses results
without a commit, and parts of several commits unless the caller allows them. Then each part keeps
its own run, and the tables show it.
"""

from __future__ import annotations

from collections.abc import Sequence

from acs_cl.benchmarks.suite import documents
from acs_cl.benchmarks.suite.documents import (
    PARTS,
    SUITE,
    Document,
    ResultError,
    kind_of,
    parts_of,
)
from acs_cl.benchmarks.suite.provenance import CHANGED

ALIKE = ("preset", "seed")
"""Values that have to be equal, for workloads: else it is another measurement."""


def merged(old: Document | None, new: Sequence[tuple[str, Document]], several: bool) -> Document:
    """Return one document: the old one's parts, replaced by the new ones'. `new`: by file name. Its
    machine is the one that most parts are of, since a device may have been in several."""
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
    newest_first = [document for _, document in reversed(new)] + ([old] if old is not None else [])
    most = max(newest_first, key=lambda document: len(parts_of(document)))
    whole = {**new[-1][1], "machine": most["machine"], PARTS[kind_of(first)]: parts}
    if kind_of(first) == SUITE:
        whole["left_out"] = [name for name in first.get("left_out", ()) if name not in parts]
    _check_commits(whole, several)
    return whole


def _check(name: str, document: Document) -> None:
    """Check that a new document has figures, all of them with a commit."""
    documents.checked(document, name)
    for part, result in parts_of(document).items():
        run = documents.run_of(document, result)
        if not run.commit or CHANGED in run.commit:
            raise ResultError(f"{name}: {part} is of no commit: {run.commit or 'not known'!r}")


def _check_alike(name: str, first: Document, document: Document) -> None:
    """Check that both are of one kind, device and driver, and measured in the same way."""
    if kind_of(first) != kind_of(document):
        raise ResultError(f"{name}: expected {kind_of(first)}, got {kind_of(document)}")
    ours, theirs = documents.where(first["machine"]), documents.where(document["machine"])
    if ours != theirs:
        raise ResultError(f"{name}: of {', '.join(theirs)}, expected {', '.join(ours)}")
    for key in ALIKE:
        if first.get(key) != document.get(key):
            raise ResultError(f"{name}: {key} {document.get(key)}, expected {first.get(key)}")


def _check_commits(document: Document, several: bool) -> None:
    """Check that all parts have one commit, unless several are allowed."""
    trees: dict[tuple[str, str], list[str]] = {}
    for part, result in parts_of(document).items():
        run = documents.run_of(document, result)
        trees.setdefault((run.commit, run.sources), []).append(part)
    if len(trees) > 1 and not several:
        said = "; ".join(f"{commit}: {', '.join(parts)}" for (commit, _), parts in trees.items())
        raise ResultError(f"parts of several trees, and no --several-commits: {said}")
