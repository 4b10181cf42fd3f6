"""A client's benchmark: a program of the package on its own queue and on ours, in turns.

In: a program of tests/client_programs, and the Python of an environment that has the package. Out:
for each of its runs medians and quartiles of both sides, their ratio, whether the results are the
same, and what our queue did. On a machine that has the packages and a device,

    python tests/client_speed.py tests/client_programs/nengo_ocl.py --sides auto device serial

prints that and needs nothing else of this folder but `client_worker.py`.
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
    """A process that runs the program when told to."""

    def __init__(self, python: str, program: Path, side: str) -> None:
        self.name = f"{program.stem} on {side}"
        self.process = subprocess.Popen(
            [python, str(WORKER), str(program), side],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.began: dict[str, Any] = self._answer()

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


def measure(python: str, program: Path, sides: list[str], seconds: float) -> dict[str, Any]:
    """All runs of a program, for about so many seconds each."""
    made: dict[str, Side] = {}
    try:
        for side in (PLAIN, *sides):
            made[side] = Side(python, program, side)
        began = made[PLAIN].began
        with tempfile.TemporaryDirectory() as folder:
            runs = {
                name: _in_turns(made, name, Path(folder) / f"{at}.npz", seconds)
                for at, name in enumerate(began["programs"])
            }
        return {"device": began["device"], "runs": runs}
    finally:
        for one in made.values():
            one.end()


def _in_turns(made: dict[str, Side], name: str, path: Path, seconds: float) -> dict[str, Any]:
    """Rounds of all sides, in an order that changes."""
    rounds: dict[str, list[dict[str, Any]]] = {side: [] for side in made}
    order: dict[str, Any] = {"program": name, "results": str(path)}
    first = {side: one.round(order) for side, one in made.items()}
    chance = random.Random(1)
    for _ in range(WARM_ROUNDS - 1):
        for one in made.values():
            one.round({"program": name})
    until = perf_counter() + seconds
    while len(rounds[PLAIN]) < ROUNDS and (perf_counter() < until or len(rounds[PLAIN]) < 3):
        for side in chance.sample(list(made), len(made)):
            rounds[side].append(made[side].round({"program": name}))
    plain = _summary(rounds[PLAIN])
    found: dict[str, Any] = {PLAIN: plain}
    for side in made:
        if side == PLAIN:
            continue
        found[side] = _summary(rounds[side])
        found[side]["speed"] = plain["median_ms"] / found[side]["median_ms"]
        found[side]["same_bits"] = first[side]["digest"] == first[PLAIN]["digest"]
        found[side]["distance"] = first[side].get("distance")
        both = zip(rounds[PLAIN], rounds[side], strict=True)
        pairs = [one["seconds"] / two["seconds"] for one, two in both]
        found[side]["speed_of_pairs"] = _quartiles(pairs)
        found[side]["cpu"] = found[side]["cpu_ms"] / plain["cpu_ms"]
        found[side]["counts"] = _counts(rounds[side])
    return found


def _summary(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    times = [1e3 * one["seconds"] for one in rounds]
    digests = {one["digest"] for one in rounds}
    return {
        "median_ms": median(times), "quartiles_ms": _quartiles(times), "rounds": len(times),
        "cpu_ms": median(1e3 * one["cpu"] for one in rounds),
        "different_results": len(digests),
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
    parser.add_argument("--python", default=sys.executable, help="of the client's environment")
    parser.add_argument("--out", type=Path, help="write JSON here, too")
    args = parser.parse_args()
    found = measure(args.python, args.program.resolve(), args.sides, args.seconds)
    text = json.dumps(found, indent=1)
    if args.out:
        args.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
