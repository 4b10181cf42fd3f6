"""One side of a client's benchmark: a program of a package, on its own queue or on ours.

Runs in the client's environment, as `client_worker.py PROGRAM plain|BACKEND`. Each line on stdin
asks for one round, and gets one line back: how long it took, what came out, and what our queue did.
A process of each side stays alive, so that rounds of both come in turns. One process for both would
not do: where there is a queue of ours, commands on other queues take a longer way, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

Results = Sequence[Any]
Runs = dict[str, Callable[[], Results]]


def main() -> None:
    """Prepare the program, then serve rounds until stdin ends."""
    program, side = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a package may print
    from acs_cl import devices

    for device in devices.devices():
        devices.repair(device)
    counts: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        account = None
        if side != "plain":
            from acs_cl.tools.run_script import replaced_queues

            _count_bypasses(counts)
            options = {} if side == "auto" else {"backend": side}
            account = stack.enter_context(replaced_queues(options))
        runs = _load(Path(program)).programs()
        _answer(answers, {"programs": list(runs), "device": _device(devices.choose())})
        for line in sys.stdin:
            order = json.loads(line)
            before_others = _before_others(order.get("before_others", False))
            with _counted(account, counts) as found, before_others:
                started, worked = perf_counter(), process_time()
                results = runs[order["program"]]()
                took = {"seconds": perf_counter() - started, "cpu": process_time() - worked}
            _answer(answers, {**took, **_told(results, order), "counts": dict(found)})


@contextlib.contextmanager
def _before_others(asked: bool) -> Iterator[None]:
    """Have all threads run before those of other programs, so that work beside costs no time."""

    def have_all(policy: int, priority: int) -> None:
        for thread in os.listdir("/proc/self/task") if asked else ():
            with contextlib.suppress(ProcessLookupError):  # it has ended since
                os.sched_setscheduler(int(thread), policy, os.sched_param(priority))

    have_all(os.SCHED_RR, 1)
    try:
        yield
    finally:
        have_all(os.SCHED_OTHER, 0)


def _answer(answers: Any, answer: dict[str, Any]) -> None:
    print(json.dumps(answer), file=answers, flush=True)


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _device(device: Any) -> str:
    names = device.platform.name, device.name, device.driver_version
    return " / ".join(str(name).strip() for name in names)


def _told(results: Results, order: dict[str, Any]) -> dict[str, Any]:
    """What came out: a digest; and beside the results in a file, how far from those. They are put
    there where there are none."""
    import numpy as np

    arrays = [np.ascontiguousarray(one) for one in results]
    digest = hashlib.sha256(b"".join(one.tobytes() for one in arrays)).hexdigest()[:16]
    path = order.get("results")
    if not path:
        return {"digest": digest}
    if not Path(path).exists():
        np.savez(path, *arrays)
        return {"digest": digest}
    with np.load(path) as known:
        others = [known[name] for name in known.files]
    worst = max(
        (_distance(one, other) for one, other in zip(arrays, others, strict=True)), default=0.0
    )
    return {"digest": digest, "distance": worst}


def _distance(one: Any, other: Any) -> float:
    """How far two arrays are apart, relative to the largest value."""
    import numpy as np

    if one.shape != other.shape:
        return float("inf")
    if not one.size or one.dtype.kind not in "fciub":
        return 0.0 if one.tobytes() == other.tobytes() else float("inf")
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    one, other = one.astype(wide), other.astype(wide)
    return float(np.max(np.abs(one - other)) / max(float(np.max(np.abs(other))), 1e-30))


def _count_bypasses(counts: Counter[str]) -> None:
    """Have each begin and end of a bypass, and each sample of overlap, counted."""
    from acs_cl.queue import bypass

    counted: Any = bypass.Bypass
    begin, end, decides = counted.begin, counted.end, counted.decides

    def counted_begin(self: Any, *how: Any) -> None:
        counts["bypasses begun"] += 1
        begin(self, *how)

    def counted_end(self: Any, *how: Any, **more: Any) -> None:
        counts["bypasses ended"] += 1
        end(self, *how, **more)

    def counted_decides(self: Any) -> bool:
        counts["samples"] += 1
        counts["launches sampled"] += self.sample.many
        return bool(decides(self))

    counted.begin, counted.end, counted.decides = counted_begin, counted_end, counted_decides


@contextlib.contextmanager
def _counted(account: Any, counts: Counter[str]) -> Iterator[Counter[str]]:
    """What our queues do in the block."""
    found: Counter[str] = Counter()
    before = _now(account, counts)
    yield found
    after = _now(account, counts)
    after.subtract(before)
    found.update({name: count for name, count in after.items() if count})


def _now(account: Any, counts: Counter[str]) -> Counter[str]:
    now = Counter(counts)
    for one in account.stats() if account is not None else ():
        now["tracked"] += one["launches"]
        now["bypassed"] += one["bypassed"]
        now["edges"] += sum(one["edges"].values())
        now["scheduler tasks"] += one.get("scheduler", {}).get("tasks", 0)
    return now


if __name__ == "__main__":
    main()
