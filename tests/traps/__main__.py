"""The traps from the command line: all of them, in every form, and a JSON of how they came out.

python tests/traps --device Intel --jobs 4 --out traps.json
python tests/traps --only pointers/ --verbose
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run as a folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

# PoCL's wheel builds nothing on CPUs that are newer than it is, unless this asks for a repair.
os.environ.setdefault("ACS_CL_POCL_CPU", "auto")

from acs_cl.benchmarks.suite.machine import machine
from traps import all_traps
from traps.bench import bundles
from traps.processes import Job, Result, run, serve_jobs
from traps.trying import FORMS


def is_wrong(result: Result) -> bool:
    """Whether something was missed, came out otherwise, or broke."""
    if "skipped" in result:
        return False
    bad = ("different", "when=0", "failed", "crashed")
    return not result["ranges"].startswith(("exact", "wider", "everything")) or any(
        text.startswith(bad) for text in result["forms"].values()
    )


def jobs_for(names: str, forms: Sequence[str], together: int, step: int) -> list[Job]:
    """The jobs of the traps whose name has `names` in it, in all of these forms."""
    traps = [trap for trap in all_traps() if names in trap.name]
    return [
        Job(
            tuple(trap.name for trap in group), {trap.name: list(forms) for trap in group}, step
        )
        for group in bundles(traps, together)
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
        "not built": {one["name"]: one["skipped"] for one in results if "skipped" in one},
    }  # fmt: skip


def _choose(name: str) -> Any:
    from acs_cl import devices

    return devices.choose(name or None)


def main(words: Sequence[str] | None = None) -> int:
    """The tool. Its exit status is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="traps", description="hostile kernels")
    parser.add_argument("--device", default="", help="index, or a part of the name")
    parser.add_argument("--only", default="", help="traps with this in their name")
    parser.add_argument("--forms", default=",".join(FORMS), help=f"of {','.join(FORMS)}")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--together", type=int, default=1, help="traps in one program, at most")
    parser.add_argument("--step", type=int, default=1, help="bytes flipped at first")
    parser.add_argument("--out", help="JSON of the outcome")
    parser.add_argument("--verbose", action="store_true", help="say every result")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    device = _choose(args.device)
    if args.worker is not None:
        serve_jobs(device, args.worker)
        return 0
    forms = [form for form in args.forms.split(",") if form]
    started = time.perf_counter()

    def heard(result: Result) -> None:
        if args.verbose or is_wrong(result):
            print(json.dumps(result), flush=True)

    jobs = jobs_for(args.only, forms, args.together, args.step)
    found = summary(run(jobs, args.device, args.jobs, heard))
    report = {
        "what": "python tests/traps", **machine(device),
        "seconds": round(time.perf_counter() - started), **found,
    }  # fmt: skip
    if args.out:
        Path(args.out).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(
        json.dumps({k: v for k, v in report.items() if k not in ("not built", "wrong")}, indent=1)
    )
    print(f"{len(found['wrong'])} wrong")
    return bool(found["wrong"])


if __name__ == "__main__":
    sys.exit(main())
