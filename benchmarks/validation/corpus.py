"""Count how many foreign kernels become functions: the translation, tried on a corpus.

Input: folders with sources, one for each origin (`DIR...`), and what a Python program builds while
it runs (`--capture FOLDER PROGRAM ...`). Output: the share of kernels that are translated and then
built by the device's compiler, and the causes of the others, as a table and with `--json`. With
`--run` also how many compute the same bits. Of the sources only their names are kept.

A kernel counts if the device's own compiler builds its source. Sources of equal text count once.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from acs_cl.benchmarks.validation import foreign, generators

VERSION = 1
# For some sources together; what is left then goes on in a new process.
TIMEOUT_S = {"--plain": 60, "--work": 60, "--runs": 20}
MOST_SOURCES = 100  # of one origin, so that no generator outweighs all others
OWN = "pyopencl-generators"
COMMAND = [sys.executable, "-m", "acs_cl.benchmarks", "corpus"]
# Looked into one by one: kernels whose function gave other bytes on the made-up arguments.
EXPLAINED = {
    "sort.cl: top_scan": "by NumPy the function is right; PoCL 3.0 gets the kernel itself wrong",
    "gemmN.cl: sgemmNN": "groups write the same memory; equal in one group",
    "com_dwt.cl: cl_fdwt53Kernel": "items race: no barrier after local memory is cleared",
    "kernel_gpu_opencl.cl: kernel_gpu_opencl": "reads local memory that groups this small leave"
    " unset; equal in a process of its own",
}


# ---- one source ----------------------------------------------------------------------------------


def work(paths: Iterable[str], mode: str) -> None:
    """Try every source; a line of JSON for each. In a process of its own: compilers crash."""
    from acs_cl import devices

    device = devices.choose()
    for path in paths:
        print(json.dumps(foreign.attempt(Path(path), device, mode)), flush=True)


# ---- all of them ---------------------------------------------------------------------------------


def outcomes(
    paths: list[Path], mode: str = "--work", batch: int = 10
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Find out what becomes of every source. A compiler that crashes or hangs costs one source."""
    left = list(paths)
    while left:
        tried = left[:batch]
        try:
            done = subprocess.run(
                [*COMMAND, mode, *map(str, tried)], capture_output=True, text=True,
                timeout=TIMEOUT_S[mode],
            )  # fmt: skip
            said, crash = done.stdout, "crashes"
        except subprocess.TimeoutExpired as late:
            raw = late.stdout or b""
            said, crash = raw if isinstance(raw, str) else raw.decode(), "hangs"
        answers = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        yield from zip(tried, answers, strict=False)
        left = left[len(answers) :]
        if len(answers) < len(tried):
            path = left.pop(0)
            if batch == 1:
                yield path, {"excluded" if mode == "--plain" else "failed": crash}
            else:  # what ran before may be at fault
                yield from outcomes([path], mode, 1)


def agreements(answers: dict[Path, dict[str, Any]]) -> dict[str, Any]:
    """Count how the kernels of translated sources agree, and name the ones that differ."""
    paths = [path for path, answer in answers.items() if answer.get("kernels")]
    counts: Counter[str] = Counter()
    different: list[str] = []
    for path, answer in outcomes(paths, "--runs", 5):
        runs = answer.get("runs", {"": answer.get("failed", "does not build")})
        counts.update(runs.values())
        different += [f"{path.name}: {name}" for name, how in runs.items() if how == "different"]
    return {
        "counts": dict(counts.most_common()),
        "different": {name: EXPLAINED.get(name, "not explained") for name in different},
    }


def cause(reason: str) -> str:
    """Return a reason without the names of its source."""
    reason = re.sub(r"^line \d+: ", "", reason)
    reason = re.sub(r"^argument \S+ is", "an argument is", reason)
    reason = re.sub(r" \((in )?\w*\)$", "", reason)
    reason = re.sub(r"(variable|sampler) \w+", r"\1", reason)
    return re.sub(r"'[^']*'", "'…'", reason)


def summary(origins: dict[str, list[tuple[str, dict[str, Any]]]]) -> dict[str, Any]:
    """Count outcomes for each origin and for all, and the causes of the misses."""
    causes: Counter[str] = Counter()
    excluded: Counter[str] = Counter()
    table: dict[str, Any] = {}
    for origin, answers in sorted(origins.items()):
        tried = [(name, answer) for name, answer in answers if "kernels" in answer]
        misses = [reason for _, answer in tried for reason in answer["misses"].values()]
        kernels = sum(len(answer["kernels"]) for _, answer in tried)
        causes.update(map(cause, misses))
        excluded.update(cause(answer["excluded"]) for _, answer in answers if "excluded" in answer)
        table[origin] = {
            "sources": len(tried), "excluded": len(answers) - len(tried),
            "sources_with_guessed_macros": sum(bool(answer["guessed"]) for _, answer in tried),
            "kernels": kernels, "translated_and_built": kernels - len(misses),
            "names": sorted(name for name, _ in tried),
        }  # fmt: skip
    kernels = sum(entry["kernels"] for entry in table.values())
    good = sum(entry["translated_and_built"] for entry in table.values())
    return {
        "version": VERSION, "kernels": kernels, "translated_and_built": good,
        "share": round(good / max(kernels, 1), 4), "misses_by_cause": dict(causes.most_common()),
        "excluded_by_cause": dict(excluded.most_common()), "origins": table,
    }  # fmt: skip


def sources(folders: list[Path]) -> dict[str, list[tuple[str, Path]]]:
    """Return the sources below folders, by origin. Of equal texts there is one."""
    seen: set[str] = set()
    found: dict[str, list[tuple[str, Path]]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.cl")):
            beside = path.with_suffix(".options")
            text = path.read_text("utf-8", errors="replace")
            whole = text + (beside.read_text("utf-8") if beside.exists() else "")
            if not re.search(r"\b(__)?kernel\b", text) or whole in seen:
                continue
            seen.add(whole)
            name = path.relative_to(folder).as_posix()
            if len(found.setdefault(folder.name, [])) < MOST_SOURCES:
                found[folder.name].append((name, path))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks corpus", description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--run", action="store_true", help="compare what kernels compute, too")
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["--capture"]:
        generators.capture(Path(words[1]), words[2:])
        return 0
    if words[:1] == ["--generate"]:  # in a process of its own, like --work
        generators.generate(Path(words[1]))
        return 0
    if words[:1] and words[0] in TIMEOUT_S:
        work(words[1:], words[0])
        return 0
    args = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as temporary:
        own = Path(temporary) / OWN
        subprocess.run([*COMMAND, "--generate", str(own)], check=False)
        origins, answers = measured([own, *args.folders])
        document = summary(origins)
        if args.run:
            document["runs"] = {origin: agreements(found) for origin, found in answers.items()}
    print(report(document))
    if args.json:
        args.json.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


def measured(
    folders: list[Path],
) -> tuple[dict[str, list[tuple[str, dict[str, Any]]]], dict[str, dict[Path, dict[str, Any]]]]:
    """Find out what becomes of each source below folders: by origin and name, and by path."""
    origins, everything = {}, {}
    for origin, entries in sources(folders).items():
        answers = dict(outcomes([path for _, path in entries]))
        for path, answer in answers.items():
            if "failed" in answer:  # with or without us?
                answers.update(outcomes([path], "--plain", 1))
                misses = dict.fromkeys(answers[path].get("kernels", []), answer["failed"])
                answers[path]["misses"] = misses
        everything[origin] = answers
        origins[origin] = [(name, answers[path]) for name, path in entries if path in answers]
        print(f"{origin}: {len(entries)} sources", file=sys.stderr)
    return origins, everything


def report(document: dict[str, Any]) -> str:
    """Write the document as text."""
    lines = [f"{'origin':26} {'sources':>8} {'kernels':>8} {'built':>8}"]
    for origin, entry in document["origins"].items():
        lines.append(
            f"{origin:26} {entry['sources']:8} {entry['kernels']:8} "
            f"{entry['translated_and_built']:8}"
        )
    lines.append(f"{document['share']:.1%} of {document['kernels']} kernels")
    for title in ("misses_by_cause", "excluded_by_cause"):
        lines.append(f"{title.replace('_', ' ')}:")
        lines += [f"  {count:4}  {reason}" for reason, count in document[title].items()]
    for origin, runs in document.get("runs", {}).items():
        counts = ", ".join(f"{count} {how}" for how, count in runs["counts"].items())
        lines.append(f"{origin}: {counts}")
        lines += [f"  {name}: {why}" for name, why in runs["different"].items()]
    return "\n".join(lines)
