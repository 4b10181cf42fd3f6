"""A client's benchmark: a program of the package on its own queue and on ours, in turns.

In: a program of tests/client_programs, and the Python of an environment that has the package. Out:
for each of its runs medians and quartiles of both sides, their ratio, whether the results are the
same, and what our queue did. On a machine that has the packages and a device,

    python tests/client_speed.py tests/client_programs/nengo_ocl.py --sides auto device serial

prints that and needs nothing else of this folder but `client_worker.py`. Processes of one program
differ as much as queues do, so `--processes 5` has so many of each side, and says their medians.

`--before-others` runs rounds at a real-time priority, on a machine with other work (Linux, root).
It is for rounds below half a second: the system keeps a part of each second for others.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

WORKER = Path(__file__).resolve().parent / "client_worker.py"
PLAIN = "plain"
WARM_ROUNDS = 3
"""Rounds that nobody counts: drivers compile in the first ones."""
ROUNDS = 41
"""The most that are counted of a side."""


class Side:
    """A process that runs the program when told to, which `began` waits for."""

    def __init__(self, python: str, program: Path, side: str) -> None:
        self.name = f"{program.stem} on {side}"
        self.process = subprocess.Popen(
            [python, str(WORKER), str(program), side],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def began(self) -> dict[str, Any]:
        """What it can run, and where."""
        return self._answer()

    def round(self, order: dict[str, Any]) -> dict[str, Any]:
        """One run."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        """Let the process go."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def measure(
    python: str,
    program: Path,
    sides: list[str],
    seconds: float,
    processes: int = 1,
    before_others: bool = False,
) -> dict[str, Any]:
    """All runs of a program, for about so many seconds each."""
    made: dict[str, list[Side]] = {}
    try:
        for side in (PLAIN, *sides):
            made[side] = [Side(python, program, side) for _ in range(processes)]
        began, *_ = [one.began() for group in made.values() for one in group]
        with tempfile.TemporaryDirectory() as folder:
            runs = {
                name: _in_turns(
                    made,
                    seconds,
                    {"program": name, "before_others": before_others},
                    Path(folder) / f"{at}.npz",
                )
                for at, name in enumerate(began["programs"])
            }
        about = {"processes": processes, "before_others": before_others}
        return {"device": began["device"], **about, "runs": runs}
    finally:
        for one in (one for group in made.values() for one in group):
            one.end()


Rounds = list[list[dict[str, Any]]]
"""Of each process of a side."""


def _in_turns(
    made: dict[str, list[Side]], seconds: float, order: dict[str, Any], path: Path
) -> dict[str, Any]:
    """Rounds of all processes of all sides, in an order that changes."""
    rounds: dict[str, Rounds] = {side: [[] for _ in group] for side, group in made.items()}
    compared = {**order, "results": str(path)}
    first = {side: [one.round(compared) for one in group] for side, group in made.items()}
    each = [(one, rounds[side][at]) for side, group in made.items() for at, one in enumerate(group)]
    chance = random.Random(1)
    for _ in range(WARM_ROUNDS - 1):
        for one, _heard in each:
            one.round(order)
    until, counted = perf_counter() + seconds, 0
    while counted < ROUNDS and (perf_counter() < until or counted < 3):
        for one, heard in chance.sample(each, len(each)):
            heard.append(one.round(order))
        counted += 1
    plain = _summary(rounds[PLAIN])
    found: dict[str, Any] = {PLAIN: plain}
    right = first[PLAIN][0]["digest"]
    for side in made:
        if side == PLAIN:
            continue
        found[side] = _summary(rounds[side])
        found[side]["speed"] = plain["median_ms"] / found[side]["median_ms"]
        found[side]["same_bits"] = all(one["digest"] == right for one in first[side])
        found[side]["distance"] = max(one.get("distance") or 0.0 for one in first[side])
        both = zip(_all(rounds[PLAIN]), _all(rounds[side]), strict=True)
        pairs = [one["seconds"] / two["seconds"] for one, two in both]
        found[side]["speed_of_pairs"] = _quartiles(pairs)
        found[side]["cpu"] = found[side]["cpu_ms"] / plain["cpu_ms"]
        found[side]["counts"] = _counts(_all(rounds[side]))
    return found


def _all(of_processes: Rounds) -> list[dict[str, Any]]:
    return [one for own in of_processes for one in own]


def _summary(of_processes: Rounds) -> dict[str, Any]:
    rounds = _all(of_processes)
    times = [1e3 * one["seconds"] for one in rounds]
    medians = [median(1e3 * one["seconds"] for one in own) for own in of_processes]
    return {
        "median_ms": median(medians), "quartiles_ms": _quartiles(times), "rounds": len(times),
        "process_medians_ms": [round(one, 4) for one in sorted(medians)],
        "cpu_ms": median(1e3 * one["cpu"] for one in rounds),
        "different_results": len({one["digest"] for one in rounds}),
    }  # fmt: skip


def _quartiles(values: list[float]) -> list[float]:
    return [round(one, 4) for one in quantiles(values, n=4)]


def _counts(rounds: list[dict[str, Any]]) -> dict[str, float]:
    """What our queue did in a round, on average."""
    total: Counter[str] = Counter()
    for one in rounds:
        total.update(one["counts"])
    return {name: round(count / len(rounds), 2) for name, count in sorted(total.items())}


def main() -> int:
    """Measure one program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--sides", nargs="+", default=["auto"], help="auto, or backends")
    parser.add_argument("--seconds", type=float, default=20, help="for each run of the program")
    parser.add_argument("--processes", type=int, default=1, help="of each side")
    parser.add_argument("--before-others", action="store_true", help="at a real-time priority")
    parser.add_argument("--python", default=sys.executable, help="of the client's environment")
    parser.add_argument("--out", type=Path, help="write JSON here, too")
    args = parser.parse_args()
    found = measure(
        args.python, args.program.resolve(), args.sides, args.seconds, args.processes,
        args.before_others,
    )  # fmt: skip
    text = json.dumps(found, indent=1)
    if args.out:
        args.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
