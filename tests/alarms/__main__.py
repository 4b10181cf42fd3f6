"""The test suite under a watchdog: which alarms it gives, and what was running.

    python tests/alarms --out alarms.json [--seconds 10] [arguments of pytest]

In: tests. Out: JSON with false alarms: reports of watchdogs that wait as long as asked here. Tests
of the watchdog plant hangs and have times of their own. Programs with an endless kernel say so
(`listener.py`). Both are counted apart. Programs that tests start are listened to, too.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from time import perf_counter
from typing import Any

from acs_cl import devices
from acs_cl.benchmarks.suite import documents, provenance

LISTENER = Path(__file__).with_name("listener.py")
WHOLE = (
    ("-q", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "-m", "not alone"),
    ("-q", "-m", "alone"),
)
"""What is run where nothing else is asked for: the suite, as `make test` runs it."""

LINE = 'import os, runpy; "ACS_ALARMS" in os.environ and runpy.run_path({path!r})\n'
ENDED = re.compile(r"(\d+) (passed|failed|skipped|error)")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/alarms", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=10.0)
    asked, words = parser.parse_known_args()
    notes = asked.out.resolve().with_suffix(".lines")
    notes.unlink(missing_ok=True)
    hook = Path(sysconfig.get_path("purelib")) / f"acs_alarms_{os.getpid()}.pth"
    environment = {"ACS_ALARMS": str(notes), "ACS_CL_WATCHDOG": f"{asked.seconds:g}"}
    runs = [words] if words else WHOLE
    began = perf_counter()
    hook.write_text(LINE.format(path=str(LISTENER)), encoding="utf-8")
    tests: Counter[str] = Counter()
    device, code = devices.choose().name, 2
    try:
        code = max(_run(one, os.environ | environment, tests) for one in runs)
    finally:
        hook.unlink()
        told = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
        alarms: list[dict[str, Any]] = [json.loads(line) for line in told]
        ours = [one for one in alarms if one["seconds"] == asked.seconds and not one.pop("planted")]
        found = {
            "what": "alarms of a watchdog in the test suite",
            "date": datetime.now(timezone.utc).date().isoformat(),
            "device": device,
            **provenance.sources().plain(),
            "seconds": asked.seconds,
            "runs": [" ".join(one) for one in runs],
            "tests": dict(tests),
            "took_s": round(perf_counter() - began, 1),
            "reports_of_planted_hangs": len(alarms) - len(ours),
            "alarms": ours,
        }
        documents.write(asked.out, found)
        notes.unlink(missing_ok=True)
    for one in ours:
        print(f"{one['test']}: {one['text']}")
    print(f"{len(ours)} alarms")
    return code or bool(ours)


def _run(words: Sequence[str], environment: dict[str, str], tests: Counter[str]) -> int:
    """Run pytest once; `tests` counts how many ended how."""
    last = ""
    command = [sys.executable, "-m", "pytest", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stdout is not None
        for line in run.stdout:
            print(line, end="", flush=True)
            last = line if ENDED.search(line) else last
    tests.update({what: int(n) for n, what in ENDED.findall(last)})
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
