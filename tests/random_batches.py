"""Many random programs of random kernels, in processes of 50 pools each.

In: how many, and the seed of the first pool. Out: the sums of what `random_launches.py` counted, as
JSON, and for each process that died where it was, and how that pool came out in a process of its
own. A driver that crashes ends one process, not the count: programs of the pool at which it
happened count only if the second run of it passes.

    python tests/random_batches.py --programs 20000 --out benchmarks/results/inference.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from random_launches import PROGRAMS

POOLS = 50
"""In one process."""
LIMIT_S = 1800
"""For one process; a single program that hangs ends it sooner."""

TOOL = Path(__file__).with_name("random_launches.py")
Report = dict[str, Any]


def batch(first: int, programs: int) -> tuple[int, Report]:
    """A process of its own. Its exit status, and what it counted as far as it came."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "report.json")
        words = ["--programs", str(programs), "--first", str(first), "--out", str(out)]
        try:
            done = subprocess.run(
                [sys.executable, str(TOOL), *words], timeout=LIMIT_S, check=False,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={**os.environ, "POCL_CACHE_DIR": folder},
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            done = -9
        return done, json.loads(out.read_text()) if out.exists() else {}


def main(words: Sequence[str] | None = None) -> int:
    """The tool."""
    parser = argparse.ArgumentParser(description="random programs, in several processes")
    parser.add_argument("--programs", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first pool")
    parser.add_argument("--out", help="JSON of what was counted")
    args = parser.parse_args(words)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    died: list[dict[str, Any]] = []
    about: Report = {}
    seed, started = args.first, time.perf_counter()
    while counts["programs"] < args.programs and len(wrong) < 10:
        left = min(args.programs - counts["programs"], POOLS * PROGRAMS)
        status, report = batch(seed, left)
        counts += _numbers(report)
        about = about or {name: report[name] for name in ("what", "device", "driver") if report}
        wrong += report.get("wrong", [])
        came = report.get("pools", [seed, seed])[1]
        if status not in (0, 1):
            again, more = batch(came, PROGRAMS)
            died.append({"status": status, "pool": came, "again": again})
            if again == 0:
                counts += _numbers(more)
            else:
                wrong += more.get("wrong", [f"pool {came}: the process ended with {again}"])
            came += 1
        seed = came
        print(f"{counts['programs']} programs, {time.perf_counter() - started:.0f} s, pool {seed}, "
              f"edges {counts['edges_whole']} -> {counts['edges_inferred']}, {len(wrong)} wrong, "
              f"{len(died)} processes died {wrong or ''}", flush=True)  # fmt: skip
        result = {**about, "date": time.strftime("%Y-%m-%d"), "pools": [args.first, seed],
                  "seconds": round(time.perf_counter() - started), "wrong": wrong, "died": died,
                  **dict(sorted(counts.items()))}  # fmt: skip
        if args.out:
            Path(args.out).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return bool(wrong)


def _numbers(report: Report) -> Counter[str]:
    return Counter({name: value for name, value in report.items()
                    if isinstance(value, int) and name != "seconds"})  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
