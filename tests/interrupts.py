"""Ctrl-C at random moments of every call that may block, on every backend.

In: backends, calls, and how many signals each. Out: counts for each of them (`Count`), and whether
the process hung. A worker process for each backend starts work, has SIGINT sent to itself after a
random time while it makes the call, catches `KeyboardInterrupt`, and checks that everything goes on
with right values. Its parent has a deadline; a worker that hangs shows its stacks.

Moments are random and so is what they meet: the time is what is tested. Nothing else waits for a
time to pass: who sends the signals says when one was sent.

    python tests/interrupts.py --signals 200 --out benchmarks/results/signals-pocl.json
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import fcntl
import json
import os
import random
import signal
import struct
import subprocess
import sys
import termios
import time
from array import array
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pyopencl as cl
from interrupted_programs import Program, QueueProgram

BACKENDS = ("serial", "out_of_order", "lanes", "device", "auto", "emulated", "queue")

HANGS_S = 120.0
"""A call that takes so long hangs."""

HEARD_S = 0.5
"""A signal is heard so long after it was sent at the latest."""

LONGEST_S = 0.008
"""Signals come at most so long after a call began."""


class Count(NamedTuple):
    """What became of the signals of one call on one backend."""

    backend: str
    call: str
    signals: int = 0
    inside: int = 0
    """Those that ended the call."""
    wrong: int = 0
    """After how many there were wrong values."""
    errors: tuple[str, ...] = ()
    """What was raised that is no `KeyboardInterrupt`."""
    hangs: int = 0
    slowest_s: float = 0.0
    """The longest from when a signal was sent until it ended the call."""


# ---- who sends signals ---------------------------------------------------------------------------

SENDER = """
import os, signal, struct, sys, time
for line in sys.stdin:
    until = time.perf_counter() + float(line)
    while (left := until - time.perf_counter()) > 0:
        time.sleep(left)
    os.pwrite(int(sys.argv[2]), struct.pack("d", time.monotonic()), 0)
    os.kill(int(sys.argv[1]), signal.SIGINT)
    print(flush=True)
"""


class Sender:
    """A process that sends SIGINT to this one."""

    def __init__(self) -> None:
        self._when = os.memfd_create("sent")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", SENDER, str(os.getpid()), str(self._when)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            pass_fds=(self._when,),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self._told = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._ordered = 0

    def interrupt(self, call: Callable[[], Any], seconds: float) -> float | None:
        """Send a signal after so many seconds; how long after that it ended the call, if it did."""
        inside = False
        self._ordered += 1
        try:
            os.write(self._orders, f"{seconds}\n".encode())
            inside = True
            call()
            inside = False
            self._wait_until_heard()
        except KeyboardInterrupt:
            heard = time.monotonic()
            self._wait_until_sent()
            if inside:
                return heard - float(struct.unpack("d", os.pread(self._when, 8, 0))[0])
        except Exception:
            with contextlib.suppress(KeyboardInterrupt):
                self._wait_until_heard()
            raise
        return None

    def _wait_until_heard(self) -> None:
        """A signal may come to another thread first, or into a finalizer, and be heard later."""
        self._wait_until_sent()
        until = time.perf_counter() + HEARD_S
        while time.perf_counter() < until:
            os.sched_yield()

    def _wait_until_sent(self) -> None:
        """Lines are left where they are: reading could be interrupted between a line and noting
        it."""
        left = array("i", [0])
        while left[0] < self._ordered:
            fcntl.ioctl(self._told, termios.FIONREAD, left)
            os.sched_yield()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


# ---- a worker ------------------------------------------------------------------------------------


def counts(
    backend: str, signals: int, seed: int, only: str = "", every: int = 1
) -> Iterator[Count]:
    """Interrupt each call of a backend so often, or one in `every` calls: which ones, says the
    seed."""
    moments = random.Random(seed)
    program: Any = QueueProgram(backend) if backend == "queue" else Program(backend)
    sender = Sender()
    for place, (name, call) in enumerate(program.calls().items()):
        if only not in name or (place + seed) % every:
            continue
        count = Count(backend, name)
        for _ in range(signals):
            faulthandler.dump_traceback_later(HANGS_S, exit=True)
            print(f"# {name}", flush=True)
            errors, right, heard_s = count.errors, False, None
            try:
                heard_s = sender.interrupt(call, moments.random() * LONGEST_S)
                right = program.goes_on()
            except Exception as error:
                errors = (*errors, f"{type(error).__name__}: {error}"[:300])
                if len(errors) > 3:
                    raise
            count = count._replace(
                signals=count.signals + 1,
                inside=count.inside + (heard_s is not None),
                slowest_s=max(count.slowest_s, round(heard_s or 0.0, 4)),
                wrong=count.wrong + (not right),
                errors=errors,
            )
        yield count
    faulthandler.dump_traceback_later(HANGS_S, exit=True)
    print("# close", flush=True)
    sender.close()
    program.close()


def work(backend: str, signals: int, seed: int, only: str, every: int) -> None:
    """Be a worker: counts as lines of JSON."""
    for count in counts(backend, signals, seed, only, every):
        print(json.dumps(count._asdict()), flush=True)
    print("# exit", flush=True)


# ---- the parent ----------------------------------------------------------------------------------


def interrupted(
    backend: str, signals: int, seed: int = 0, every: int = 1
) -> tuple[list[Count], str]:
    """The counts of a backend, by a worker; and what it said on stderr. A call in which it hung, or
    in which it crashed, has a count of its own."""
    command = [sys.executable, "-X", "faulthandler", __file__, "--worker", backend]
    command += ["--signals", str(signals), "--seed", str(seed), "--every", str(every)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    most_s = 4 * HANGS_S + 0.5 * signals * 25
    try:
        said, errors = process.communicate(timeout=most_s)
    except subprocess.TimeoutExpired:  # not even its own watchdog has ended it
        process.kill()
        said, errors = process.communicate()
    found, last = [], "start"
    for line in said.splitlines():
        if line.startswith("{"):
            record = json.loads(line)
            found.append(Count(**{**record, "errors": tuple(record["errors"])}))
        elif line.startswith("# "):
            last = line[2:]
    if process.returncode:
        hung = "Timeout (" in errors or process.returncode == -signal.SIGKILL
        error = () if hung else (f"exit status {process.returncode}: {errors[-600:]}",)
        found.append(Count(backend, last, errors=error, hangs=int(hung)))
    return found, errors


def report(found: list[Count], device: cl.Device) -> dict[str, Any]:
    """All of it, for a file."""
    with contextlib.suppress(OSError):
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
        ).stdout.strip()  # fmt: skip
    total = {
        name: sum(getattr(one, name) for one in found)
        for name in ("signals", "inside", "wrong", "hangs")
    }
    return {
        "what": "Ctrl-C at random moments, by backend and call",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "commit": commit,
        "device": device.name.strip(),
        "driver": f"{device.platform.name.strip()} {device.driver_version.strip()}",
        "python": sys.version.split()[0],
        "total": {
            **total,
            "errors": sum(len(one.errors) for one in found),
            "slowest_s": max((one.slowest_s for one in found), default=0.0),
        },
        "counts": [one._asdict() for one in found],
    }


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--signals", type=int, default=200, help="for each call of each backend")
    parser.add_argument("--backends", default=",".join(BACKENDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="calls with this in their names")
    parser.add_argument("--every", type=int, default=1, help="one call in so many, by the seed")
    parser.add_argument("--worker")
    given = parser.parse_args()
    # In the background of a shell a process ignores SIGINT, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if given.worker:
        work(given.worker, given.signals, given.seed, given.only, given.every)
        return 0
    found: list[Count] = []
    for backend in given.backends.split(","):
        began = time.perf_counter()
        ours, errors = interrupted(backend, given.signals, given.seed, given.every)
        found += ours
        bad = [one for one in ours if one.wrong or one.errors or one.hangs]
        many, inside = sum(one.signals for one in ours), sum(one.inside for one in ours)
        print(f"{backend}: {many} signals, {inside} inside, {len(bad)} calls bad, "
              f"{time.perf_counter() - began:.0f} s", flush=True)  # fmt: skip
        for one in bad:
            print(f"  {one}", flush=True)
        if bad:
            print(errors[-4000:], file=sys.stderr, flush=True)
    document = report(found, cl.create_some_context(interactive=False).devices[0])
    print(json.dumps(document["total"]))
    if given.out:
        given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return int(any(document["total"][name] for name in ("wrong", "errors", "hangs")))


if __name__ == "__main__":
    sys.exit(main())
