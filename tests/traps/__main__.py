"""The traps from the command line: all of them, in every form, and a JSON of how they came out.

python tests/traps --device Intel --jobs 4 --out traps.json
python tests/traps --device NVIDIA --seconds 400 --out traps.json --continue
python tests/traps --only pointers/ --verbose

The JSON is complete after each job, so that a run that is cut off can go on where it was. What was
wrong is tried again then, and so is a trap that has changed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run as a folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

# PoCL's wheel builds nothing on CPUs that are newer than it is, unless this asks for a repair.
os.environ.setdefault("ACS_CL_POCL_CPU", "auto")

from acs_cl.benchmarks.suite.machine import machine
from traps import all_traps
from traps.case import Trap
from traps.processes import LIMIT_S, Job, Result, run, serve_jobs
from traps.trying import FORMS

SAME = ("device", "driver", "sources", "asked forms", "together", "step")
"""What a run has in common with the one that it goes on with."""


NOT_TRIED: Result = {"ranges": "not tried", "forms": {}}


def is_wrong(result: Result) -> bool:
    """Whether something was missed, came out otherwise, or broke."""
    if "skipped" in result:
        return False
    bad = ("different", "when=0", "failed", "crashed")
    return not result["ranges"].startswith(("exact", "wider", "everything")) or any(
        text.startswith(bad) for text in result["forms"].values()
    )


def jobs_for(
    traps: Sequence[Trap], forms: Sequence[str], together: int, scheduled: int, step: int
) -> list[Job]:
    """The jobs of these traps, in all of these forms; those that share no program come last, since
    a driver that does not end on one keeps its whole job waiting."""
    traps = sorted(traps, key=lambda trap: not trap.shares)
    return [
        Job(tuple(trap.name for trap in group), {trap.name: list(forms) for trap in group}, step,
            together)
        for group in (traps[at : at + scheduled] for at in range(0, len(traps), scheduled))
    ]  # fmt: skip


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """How many came out how."""
    tried = [one for one in results if "skipped" not in one]
    forms: dict[str, Counter[str]] = {}
    for one in tried:
        for form, text in one["forms"].items():
            key = text if text.startswith("same") else text.split(":")[0]
            forms.setdefault(form, Counter())[key] += 1
    return {
        "traps": len(results),
        "skipped": len(results) - len(tried),
        "ranges": dict(Counter(one["ranges"].split()[0].strip(":") for one in tried)),
        "forms": {form: dict(counts) for form, counts in sorted(forms.items())},
        "wrong": [one for one in results if is_wrong(one)],
        "refused": [one["name"] for one in tried
                    if any(text.startswith("refused") for text in one["forms"].values())],
    }  # fmt: skip


def digest(trap: Trap) -> str:
    """Eight digits that tell whether a trap has changed."""
    return sha256(repr(trap).encode()).hexdigest()[:8]


class Report:
    """What is known of each trap, in a file that is whole at every moment.

    `about` says what the results are of: those in a file that says otherwise are not gone on with.
    `traps` are all there are, tried now or not.
    """

    def __init__(self, path: Path | None, about: dict[str, Any], traps: Sequence[Trap]) -> None:
        self.path, self.about = path, about
        self.digests = {trap.name: digest(trap) for trap in traps}
        self.results: dict[str, Result] = {}
        self.seconds, self.began = 0.0, time.monotonic()

    def go_on(self) -> None:
        """Take what the file says of traps that have not changed and were right."""
        if self.path is None or not self.path.exists():
            return
        known = json.loads(self.path.read_text(encoding="utf-8"))
        for name, value in self.about.items():
            if name in SAME and known.get(name) != value:
                raise SystemExit(f"{self.path}: {name} is {known.get(name)!r}, and {value!r} here")
        self.seconds = known["seconds"]
        for one in known["results"]:
            if self.digests.get(one["name"]) == one["trap"] and not is_wrong(one):
                self.results[one["name"]] = one

    def add(self, results: Sequence[Result]) -> None:
        """Note results, and write the file."""
        for one in results:
            self.results[one["name"]] = {**one, "trap": self.digests[one["name"]]}
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = self.path.with_suffix(".new")
            new.write_text(self.text(), encoding="utf-8")
            new.replace(self.path)

    def plain(self) -> dict[str, Any]:
        """Give what there is to say, but for the results one by one."""
        seconds = self.seconds + time.monotonic() - self.began
        counts = summary(list(self.results.values()))
        return {**self.about, "seconds": round(seconds), "left": self.left(), **counts}

    def left(self) -> int:
        """How many traps were not tried yet."""
        return len(self.digests.keys() - self.results.keys())

    def text(self) -> str:
        """Give the JSON, with a line for each trap."""
        whole = json.dumps(self.plain(), indent=1).removesuffix("\n}")
        lines = ",\n".join(json.dumps(self.results[name]) for name in sorted(self.results))
        return f'{whole},\n "results": [\n{lines}\n ]\n}}\n'


def _choose(name: str) -> Any:
    from acs_cl import devices

    return devices.choose(name or None)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="traps", description="hostile kernels")
    parser.add_argument("--device", default="", help="index, or a part of the name")
    parser.add_argument("--only", default="", help="traps with this in their name")
    parser.add_argument("--forms", default=",".join(FORMS), help=f"of {','.join(FORMS)}")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--together", type=int, default=1, help="traps in one program, at most")
    parser.add_argument("--scheduled", type=int, default=16, help="traps in one scheduler")
    parser.add_argument("--step", type=int, default=1, help="bytes flipped at first")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to end")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for each step")
    parser.add_argument("--out", type=Path, help="JSON of the outcome")
    parser.add_argument("--continue", dest="goes_on", action="store_true",
                        help="only what --out does not have")  # fmt: skip
    parser.add_argument("--verbose", action="store_true", help="say every result")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """The tool. Its exit status is 1 if anything is wrong."""
    args = _parser().parse_args(words)
    device = _choose(args.device)
    if args.worker is not None:
        serve_jobs(device, args.worker)
        return 0
    forms = [form for form in args.forms.split(",") if form]
    about = {"what": "python tests/traps", **machine(device), "asked forms": forms,
             "together": args.together, "step": args.step}  # fmt: skip
    traps = all_traps()
    report = Report(args.out, about, traps)
    if args.goes_on:
        report.go_on()

    def heard(results: Sequence[Result]) -> None:
        report.add(results)
        for result in results:
            if args.verbose or is_wrong(result):
                print(json.dumps(result), flush=True)
        print(f"{len(report.results)} of {len(traps)} traps", flush=True)

    todo = [one for one in traps if args.only in one.name and one.name not in report.results]
    jobs = jobs_for(todo, forms, args.together, args.scheduled, args.step)
    run(jobs, args.device, args.jobs, heard, args.seconds, args.limit)
    found = report.plain()
    print(json.dumps({k: v for k, v in found.items() if k != "wrong"}, indent=1))
    print(f"{len(found['wrong'])} wrong, {found['left']} not tried")
    return any(is_wrong(report.results.get(one.name, NOT_TRIED)) for one in todo)


if __name__ == "__main__":
    sys.exit(main())
