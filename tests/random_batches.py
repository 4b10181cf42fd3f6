"""Many random programs, in processes of their own, over every configuration; a report as JSON.

    python tests/random_batches.py --programs 100000 --kernels 2000 --json out.json
    python tests/random_batches.py --device NVIDIA --processes 16 --seconds 420 --json out.json
    python tests/random_batches.py --seed 1234                 # one again, here; or --kind loops
    python tests/random_batches.py --merge one.json other.json --json both.json

`--programs` counts programs of kernels that are built once a process, `--kernels` programs of newly
made kernels, which are counted apart. A process that dies ends its range of seeds, not the count:
its seed is run again alone, and counts only if it passes there. `--continue` goes on behind the
seeds of the file; so may another machine, and the files be merged. What ran is known by its commit,
or by the stamp in ACS_CL_COMMIT where there is no checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import random_worker
from random_launches import PROGRAMS

from acs_cl.benchmarks.suite import provenance
from acs_cl.host.progress import Progress

BLOCK = {"pool": 3000, "kernels": 50, "repeats": 3000, "devices": 3000, "loops": 3000,
         "trees": 1000, "bands": 1500, "mixes": 100}  # fmt: skip
"""Most seeds of a process. PoCL dies after some hundred sources."""
LEAST = 40
MOST_WRONG = 20
TOOL = Path(__file__).with_name("random_worker.py")
SAME = ("commit", "digest", "device", "platform", "driver", "core")
"""What two reports have in common that may be merged."""
Report = dict[str, Any]


class Section:
    """What was counted of a kind."""

    def __init__(self, kind: str, report: Report | None = None) -> None:
        known = report or {}
        self.kind = kind
        self.counts: Counter[str] = Counter(_flat(known))
        self.seeds: list[list[int]] = known.get("seeds", [])
        self.wrong: list[Any] = known.get("wrong", [])
        self.died: list[Any] = known.get("died", [])
        self.behind = max((end for _, end in self.seeds), default=0)

    def add(self, first: int, state: Report) -> None:
        """What a process did."""
        self.counts.update(state["counts"])  # zeros included
        self.wrong += state["wrong"]
        if state["next"] > first:
            self.seeds.append([first, state["next"]])

    def plain(self) -> Report:
        """For JSON."""
        ways: dict[str, dict[str, int]] = {}
        plain: Report = {}
        for name, value in sorted(self.counts.items()):
            way, _, what = name.rpartition(": ")
            (ways.setdefault(way, {}) if way else plain)[what] = value
        whole = {"configurations": ways} if ways else {}
        return {**plain, **whole, "seeds": _joined(self.seeds), "wrong": self.wrong,
                "died": self.died}  # fmt: skip


def _flat(report: Report) -> dict[str, int]:
    flat = {name: value for name, value in report.items() if isinstance(value, int)}
    for way, counts in report.get("configurations", {}).items():
        flat |= {f"{way}: {name}": value for name, value in counts.items()}
    return flat


def _joined(seeds: Sequence[Sequence[int]]) -> list[list[int]]:
    found: list[list[int]] = []
    for first, end in sorted(seeds):
        if found and first <= found[-1][1]:
            found[-1][1] = max(end, found[-1][1])
        else:
            found.append([first, end])
    return found


class Run:
    """Processes side by side, and what they found."""

    def __init__(self, device: str, until: float, block: int | None, known: Report) -> None:
        self._device, self._until, self._block = device, until, block
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._progress = Progress()
        self._known = known
        self.save: Callable[[], None] = lambda: None
        """Called whenever a process has ended, since this one may end too."""
        self.about: Report = {}
        self.sections = {kind: Section(kind, known.get(kind)) for kind in random_worker.KINDS}

    def all_of(self, kind: str, programs: int, first: int | None, processes: int) -> None:
        """At least so many more programs of a kind, if the time lasts."""
        section = self.sections[kind]
        before = section.counts["programs"]
        goal, seed = section.counts["programs"] + programs, first or section.behind
        each = PROGRAMS if kind == "kernels" else 1
        self._share = lambda: (section.counts["programs"] - before) / max(1, goal - before)
        while not self.is_over(section, goal):
            seeds = max(1, (goal - section.counts["programs"]) // each)
            block = self._block or min(BLOCK[kind], -(-seeds // processes))
            block = max(min(seeds, LEAST), block)
            ranges = [(start, min(block, seed + seeds - start))
                      for start in range(seed, seed + seeds, block)]  # fmt: skip
            seed += seeds
            with ThreadPoolExecutor(processes) as pool:
                try:
                    list(pool.map(lambda one: self._range(section, *one), ranges))
                except KeyboardInterrupt:
                    self._until = 0.0  # what runs has heard it, too; nothing more begins
                    raise
        self._progress.end()

    def is_over(self, section: Section, goal: int) -> bool:
        """Whether nothing more is to be run of a kind."""
        return (section.counts["programs"] >= goal or time.time() >= self._until
                or len(section.wrong) >= MOST_WRONG)  # fmt: skip

    def _range(self, section: Section, first: int, count: int) -> None:
        """Seeds in a process; where it dies, in several."""
        todo = [(first, count)]
        while todo and time.time() < self._until and len(section.wrong) < MOST_WRONG:
            first, count = todo.pop()
            status, state, now = self._process(section.kind, first, count)
            with self._lock:
                if state:
                    self.about = {name: state[name] for name in SAME if name in state}
                    section.add(first, state)
                if status == -signal.SIGINT:  # Ctrl-C ended it: it did not die
                    todo.clear()
                elif status not in (0, 1):
                    begin = state.get("next", first) if state else first
                    self._dead(section, status, now, count)
                    behind = (now + 1, first + count - now - 1)
                    alone = [(now, 1)] if count > 1 else []
                    todo += [one for one in (behind, *alone, (begin, now - begin)) if one[1] > 0]
                self._say(section)

    def _dead(self, section: Section, status: int, seed: int, count: int) -> None:
        what = "took too long" if status == random_worker.HANGS else f"exit status {status}"
        section.died.append({"seed": seed, "what": what, "alone": count == 1})
        if count == 1:
            wrong = {"seed": seed, "kind": section.kind, "what": f"alone: {what}"}
            section.wrong.append(wrong)

    def _process(self, kind: str, first: int, count: int) -> tuple[int, Report, int]:
        """Exit status, what it counted, and the seed that it came to."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "state.json")
            words = ["--kind", kind, "--first", str(first), "--count", str(count), "--out",
                     str(out), "--device", self._device, "--until", str(self._until)]  # fmt: skip
            environment = dict(os.environ)
            if kind == "kernels":  # which nobody builds a second time
                environment["POCL_CACHE_DIR"] = folder
            status = subprocess.run(
                [sys.executable, str(TOOL), *words], check=False, env=environment,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            ).returncode  # fmt: skip
            state = json.loads(out.read_text()) if out.exists() else {}
            now = Path(f"{out}.now")
            return status, state, int(now.read_text() or first) if now.exists() else first

    def _say(self, section: Section) -> None:
        counts, took = section.counts, time.monotonic() - self._began
        text = (f"{section.kind}: {counts['programs']} programs, {took:.0f} s, "
                f"{len(section.wrong)} wrong, {len(section.died)} processes died")  # fmt: skip
        self._progress(text, min(1.0, self._share()))
        self.save()

    def report(self, processes: int) -> Report:
        """What there is to say."""
        seconds = time.monotonic() - self._began
        versions = {name: _version(name) for name in ("acs_cl", "pyopencl", "numpy", "libclang")}
        return {
            "what": "random programs, bit by bit beside NumPy",
            "date": time.strftime("%Y-%m-%d"),
            **provenance.sources().plain(),
            **{name: self._known[name] for name in SAME if name in self._known},
            **self.about,
            "versions": {"python": platform.python_version(), **versions},
            "processes": processes,
            "seconds": round(seconds + self._known.get("seconds", 0)),
            **{kind: one.plain() for kind, one in self.sections.items() if one.counts},
        }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def merged(reports: Sequence[Report]) -> Report:
    """The sum of reports on the same sources and device."""
    first = reports[0]
    for other in reports[1:]:
        for name in SAME:
            if first.get(name) != other.get(name):
                raise SystemExit(f"{name}: {first.get(name)!r} is not {other.get(name)!r}")
    sections = {}
    for kind in random_worker.KINDS:
        whole = Section(kind)
        for section in (Section(kind, report.get(kind)) for report in reports):
            whole.counts.update(section.counts)
            whole.seeds += section.seeds
            whole.wrong += section.wrong
            whole.died += section.died
        if sum(end - begin for begin, end in _joined(whole.seeds)) != sum(
            end - begin for begin, end in whole.seeds
        ):
            raise SystemExit(f"{kind}: some seeds are in several reports")
        if whole.counts:
            sections[kind] = whole.plain()
    return {**first, "seconds": sum(one["seconds"] for one in reports), **sections}


def again(kind: str, seed: int, device: str) -> int:
    """A seed in this process, with whatever it raises."""
    runner = random_worker.RUNNERS[kind](random_worker.chosen(device))
    runner.one(seed)
    print(f"{kind}, seed {seed}, {runner.about(seed)}: right")
    return 0


def _save(report: Report, path: Path | None) -> None:
    text = json.dumps(report, indent=1) + "\n"
    if path is None:
        print(text)
        return
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def main(words: Sequence[str] | None = None) -> int:
    """The tool."""
    parser = argparse.ArgumentParser(description="random programs, in several processes")
    parser.add_argument("--programs", type=int, default=0, help="of kernels that are built once")
    parser.add_argument("--kernels", type=int, default=0, help="programs of newly made kernels")
    parser.add_argument("--repeats", type=int, default=0, help="programs that repeat their steps")
    parser.add_argument("--several", type=int, default=0, help="programs on several devices")
    parser.add_argument("--loops", type=int, default=0, help="programs with loops")
    parser.add_argument("--trees", type=int, default=0, help="programs of trees of spawned items")
    parser.add_argument("--bands", type=int, default=0, help="recorded programs in bands")
    parser.add_argument("--mixes", type=int, default=0, help="programs that mix everything")
    parser.add_argument("--device", default="", help="a part of its name, or of its platform's")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to end")
    parser.add_argument("--block", type=int, help="most seeds of a process")
    parser.add_argument("--first", type=int, help="the first seed of both kinds")
    parser.add_argument("--json", type=Path, help="where the report goes")
    parser.add_argument("--continue", dest="goes_on", action="store_true")
    parser.add_argument("--merge", type=Path, nargs="+", help="reports to add up")
    parser.add_argument("--seed", type=int, help="one seed, in this process")
    parser.add_argument("--kind", choices=random_worker.KINDS, default="pool", help="of that seed")
    args = parser.parse_args(words)
    if args.merge:
        _save(merged([json.loads(path.read_text()) for path in args.merge]), args.json)
        return 0
    if args.seed is not None:
        return again(args.kind, args.seed, args.device)
    known = json.loads(args.json.read_text()) if args.goes_on and args.json.exists() else {}
    here = provenance.sources().plain()
    if any(known.get(name, value) != value for name, value in here.items()):
        raise SystemExit(f"{args.json} is of {known['commit']} {known['digest']}, not of {here}")
    run = Run(args.device, time.time() + args.seconds, args.block, known)
    if args.json is not None:
        run.save = lambda: _save(run.report(args.processes), args.json)
    try:
        wanted = {
            "kernels": args.kernels, "pool": args.programs, "repeats": args.repeats,
            "devices": args.several, "loops": args.loops, "trees": args.trees,
            "bands": args.bands, "mixes": args.mixes,
        }  # fmt: skip
        for kind, programs in wanted.items():
            run.all_of(kind, programs, args.first, args.processes)
    except KeyboardInterrupt:
        _save(run.report(args.processes), args.json)
        print("interrupted; the report has what was run", file=sys.stderr)
        return 130
    _save(run.report(args.processes), args.json)
    return any(section.wrong for section in run.sections.values())


if __name__ == "__main__":
    sys.exit(main())
