"""Traps tried in processes of their own, so that a driver that crashes loses one trap and no more.

In: the names of traps, a device, how closely to look. Out: a result for each. A process gets one
job after the other as lines of JSON, and says what it begins. Where it dies, the jobs that are left
go to a new process. Its own traps are tried again in halves, down to one by one, and the one that
kills a process alone has "crashed" for a result.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

LIMIT_S = 300.0
"""Seconds for one step of a job; what takes longer is ended and counts as hung."""
TOO_LONG = "took too long"
TRAPS_A_PROCESS = 128
"""A process is then replaced, so that what drivers never give back does not pile up."""

NOT_WELL = 3
"""Exit status of a process whose device takes no commands any more."""

Result = dict[str, Any]


class Job(NamedTuple):
    """Traps that are tried together, and the forms of each.

    They share a scheduler, since building one costs more than all else. `together`: how many may
    share a program. `step`: how many bytes are flipped at first.
    """

    names: tuple[str, ...]
    forms: dict[str, list[str]]
    step: int
    together: int = 1


class _Worker:
    """A process, seen from here."""

    def __init__(self, device: str, limit_s: float) -> None:
        self._limit_s = limit_s
        read, write = os.pipe()
        self.cache = tempfile.TemporaryDirectory()
        self.said = Path(self.cache.name, "said")
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("__main__.py")), "--worker", str(write),
             "--device", device],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self.said.open("w"), text=True,
            pass_fds=[write], env={**os.environ, "POCL_CACHE_DIR": self.cache.name,
                                   "ACS_CL_CACHE": self.cache.name},
        )  # fmt: skip
        os.close(write)
        self.lines = os.fdopen(read, encoding="utf-8")
        self.done = 0
        self.last_words = ""

    def try_job(self, job: Job) -> tuple[list[Result], str]:
        """The results, and what it was at when it died; '' where it lives."""
        stage, hung = "start", threading.Event()
        timer = self._ends_after_limit(hung)
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            for line in self.lines:
                timer.cancel()
                said = json.loads(line)
                if isinstance(said, list):
                    self.done += len(job.names)
                    return said, ""
                stage, timer = said, self._ends_after_limit(hung)
        except (OSError, ValueError):
            pass
        finally:
            timer.cancel()
        status = self.close()
        ended = TOO_LONG if hung.is_set() else f"exit status {status}"
        return [], f"{stage} ({ended}) {self.last_words}"

    def _ends_after_limit(self, hung: threading.Event) -> threading.Timer:
        def end() -> None:
            hung.set()
            self.process.kill()

        timer = threading.Timer(self._limit_s, end)
        timer.daemon = True
        timer.start()
        return timer

    def close(self) -> int:
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            status = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.lines.close()
        lines = self.said.read_text(errors="replace").splitlines()
        self.last_words = " ".join(lines[-3:])[-300:]
        self.cache.cleanup()
        return status


def run(
    jobs: Sequence[Job],
    device: str,
    processes: int,
    heard: Callable[[Sequence[Result]], None],
    seconds: float = float("inf"),
    limit_s: float = LIMIT_S,
    is_patient: bool = True,
) -> list[Result]:
    """Give every job's results. `heard` is told those of each job as it ends. No job begins after
    so many seconds, and no step of one takes longer than `limit_s`. `is_patient`: the parts of a
    job that took too long are tried by themselves; else they are skipped."""
    left, lock = deque(jobs), threading.Lock()
    results: list[Result] = []
    until = time.monotonic() + seconds

    def note(found: Sequence[Result]) -> None:
        with lock:
            results.extend(found)
            heard(found)

    def serve() -> None:
        worker: _Worker | None = None
        while True:
            with lock:
                job = left.popleft() if left and time.monotonic() < until else None
            if job is None:
                break
            worker = worker or _Worker(device, limit_s)
            found, died = worker.try_job(job)
            if died:
                worker = None
                print(f"a process died: {died}", flush=True)
                if is_patient or TOO_LONG not in died:
                    found = _after_death(job, died, left, lock)
                else:
                    found = [{"name": name, "skipped": f"the driver: {died}"} for name in job.names]
            elif worker.done >= TRAPS_A_PROCESS:
                worker.close()
                worker = None
            note(found)
        if worker is not None:
            worker.close()

    threads = [threading.Thread(target=serve) for _ in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def _after_death(job: Job, died: str, left: deque[Job], lock: Any) -> list[Result]:
    if half := len(job.names) // 2:
        with lock:
            for names in (job.names[:half], job.names[half:]):
                left.append(job._replace(names=names))
        return []
    name = job.names[0]
    form = died.split()[0]
    # A kernel that the driver itself cannot run says nothing about us.
    if form in ("build", "plain"):
        return [{"name": name, "skipped": f"the driver died: {died}"}]
    return [{"name": name, "ranges": "unknown", "forms": {form: f"crashed: {died}"}}]


def _listen(coming: SimpleQueue[str]) -> None:
    """Hand on what comes on standard input. Where that ends nobody waits for results: end the
    process, though its compiler may be at work, and for ever."""
    for line in sys.stdin:
        coming.put(line)
    os._exit(0)


def serve_jobs(device: Any, write: int) -> None:
    """The other end: try what comes on standard input."""
    from traps import all_traps
    from traps.bench import Bench

    out = os.fdopen(write, "w", encoding="utf-8")

    def say(what: Any) -> None:
        out.write(json.dumps(what) + "\n")
        out.flush()

    traps = {trap.name: trap for trap in all_traps()}
    bench = Bench(device, say)
    coming: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(coming,), daemon=True).start()
    while True:
        job = Job(*json.loads(coming.get()))
        found = bench.try_all([traps[name] for name in job.names], job)
        if not bench.is_well():
            os._exit(NOT_WELL)  # as if the driver had crashed, which it has
        say(found)
