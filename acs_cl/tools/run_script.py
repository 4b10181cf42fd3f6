"""``acs-cl run``: run an unchanged program of PyOpenCL on our queues.

Input: a script, or a module with ``-m``, and its arguments. Output: its exit code, and on stderr
what the queues gained, and what they could not see. While it runs, ``pyopencl.CommandQueue`` is
`acs.Queue`. ``--compare`` tells the gain in time (`turns`).

Invariant: the program runs as under Python itself (``__main__``, ``sys.argv``, ``sys.path``), and
its exceptions and exits are its own. If the reader of its output leaves, it ends silently.
"""

from __future__ import annotations

import argparse
import contextlib
import runpy
import sys
import traceback
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import pyopencl as cl

from .. import devices
from ..configuration import BACKENDS
from ..errors import UsageError, refuse_unknown
from ..host.output import write
from ..host.pipes import LEFT, nobody_reads
from ..observe.record import Record, Traced, record
from ..observe.stats import traced
from ..queue import patch, queue, runtimes
from ..queue.queue import Queue
from ..records import Report
from ..runtime import Runtime
from . import turns

HOW_TO_COMPARE = "  --compare, before the program's name, says what that gained in time\n"
CHECKED = "launches", "kernels", "runs", "passed", "found"
"""Counts of checks in the report."""


class Seen:
    """The last answers of a runtime."""

    def __init__(self) -> None:
        self.stats: Report = {}
        self.traced: Traced | None = None


class Account:
    """The work of a program's queues, including the ones that are gone."""

    def __init__(self) -> None:
        self.queues = 0
        self.not_understood: Counter[str] = Counter()
        self.keeps = False
        """Whether a page is wanted, which needs the traces of runtimes."""
        self._runtimes: weakref.WeakKeyDictionary[Runtime, Seen] = weakref.WeakKeyDictionary()
        self._seen: list[Seen] = []

    def opens(self, opened: Queue) -> None:
        """Note a new queue."""
        self.queues += 1
        runtime = opened.runtime
        if runtime not in self._runtimes:
            seen = self._runtimes[runtime] = Seen()
            self._seen.append(seen)
        weakref.finalize(opened, self._note, runtime, opened.not_understood)

    def _note(self, runtime: Runtime, not_understood: Counter[str]) -> None:
        self.not_understood += not_understood
        self._look(runtime, self._runtimes[runtime])

    def _look(self, runtime: Runtime, seen: Seen) -> None:
        seen.stats = runtime.stats()
        if self.keeps and seen.stats.get("timed", {}).get("slices"):
            seen.traced = traced(runtime.engine)

    def stats(self) -> list[Report]:
        """Return the statistics of each runtime, including the ones that are gone."""
        for runtime, seen in list(self._runtimes.items()):
            self._look(runtime, seen)
        return [seen.stats for seen in self._seen if seen.stats]

    def records(self) -> list[Record]:
        """Return the trace of each runtime, most launches first. Call `stats` before."""
        found = [record("", *seen.traced) for seen in self._seen if seen.traced is not None]
        return sorted(found, key=lambda one: -len(one.slices))


@contextlib.contextmanager
def replaced_queues(options: dict[str, Any]) -> Iterator[Account]:
    """Have ``pyopencl.CommandQueue(…)`` make a queue of ours in the block. It takes `options`, as
    `acs_cl.Queue(…)` does, and passes the type tests inside PyOpenCL."""
    account = Account()
    original, cl.CommandQueue = cl.CommandQueue, Queue  # type: ignore[misc]
    queue.watchers.append(account.opens)
    before = dict(runtimes.defaults)
    runtimes.defaults.update(options)
    try:
        with patch.kept():
            yield account
    finally:
        queue.watchers.remove(account.opens)
        runtimes.defaults.clear()
        runtimes.defaults.update(before)
        if cl.CommandQueue is Queue:
            cl.CommandQueue = original  # type: ignore[misc]


def main(args: argparse.Namespace) -> int:
    """Run the program; return its exit code."""
    ready(args)
    for option, path in (("--report", args.report), ("--out", args.out)):
        if path and not Path(path).resolve().parent.is_dir():
            raise UsageError(f"{option} {path}: there is no folder {Path(path).parent}")
        if path and Path(path).is_dir():
            raise UsageError(f"{option} {path}: it is a folder; name a file")
    here = Path.cwd()  # the program may go to another folder
    if args.report and args.no_trace:
        raise UsageError("--report needs a trace: leave out --no-trace")
    if args.turns < 1:
        raise UsageError(f"--turns {args.turns}: expected at least one")
    options: dict[str, Any] = {"trace": not args.no_trace}
    if args.backend:
        options["backend"] = args.backend
    with replaced_queues(options) as account:
        account.keeps = bool(args.report)
        code = as_python_does(args.program, args.module, args.arguments)
        text = too_late(args, "--compare", "--report") + report(account)
        if args.report:
            text += _pages(account, here / args.report, Path(args.program).name)
    if args.compare:
        times = turns.in_turns(args, here) if code == 0 else {}
        text = text.removesuffix(HOW_TO_COMPARE) + turns.compared(times)
    if args.out:
        write(here / args.out, text, "report")
    else:
        print(text, end="", file=sys.stderr)
    return code


def too_late(args: argparse.Namespace, *options: str) -> str:
    """Say which of our options stand behind the program's name, and so went to the program."""
    return "".join(
        f"acs-cl {args.command}: {late} went to the program: options of ours come before its name\n"
        for late in options
        if late in args.arguments
    )


def ready(args: argparse.Namespace) -> None:
    """Refuse options that would fail in the middle of the program, and repair devices."""
    program = Path(args.program)
    if not args.module and not program.exists():
        raise UsageError(f"there is no file {args.program!r}")
    if not args.module and program.is_dir() and not (program / "__main__.py").exists():
        raise UsageError(f"there is no __main__.py in the folder {args.program!r}")
    refuse_unknown("backend", args.backend or "auto", BACKENDS)
    repair_devices()


def _pages(account: Account, path: Path, name: str) -> str:
    """Write a page for each runtime; return text about them."""
    from ..observe.report import page

    said = []
    for count, one in enumerate(account.records(), 1):
        out = path if count == 1 else path.with_stem(f"{path.stem}-{count}")
        page.write(one._replace(title=name), out)
        said.append(f"  report: {out}\n")
    return "".join(said) or "  report: none, since nothing was timed\n"


def alone(program: str, module: str, out: str, backend: str, arguments: list[str]) -> int:
    """Run the program, and write its time to a file. With a backend it runs on our queues, else on
    its own."""
    repair_devices()
    made: list[int] = []  # queues of ours that the program makes by itself
    if not backend:
        queue.watchers.append(lambda _: made.append(1))
    ours = replaced_queues({"backend": backend}) if backend else contextlib.nullcontext()
    with ours:
        began = perf_counter()
        code = as_python_does(program, bool(module), arguments)
        said = [repr(perf_counter() - began), *([turns.HAS_OURS] if made else [])]
        Path(out).write_text(" ".join(said), "ascii")
    return code


def repair_devices() -> None:
    """Repair devices, as no program of PyOpenCL asks to. Where the environment does not either, no
    driver is opened: the program may still fork."""
    for device in devices.devices() if devices.wish() else ():
        devices.repair(device)


def as_python_does(program: str, is_module: bool, arguments: list[str]) -> int:
    """Run a program; return its exit code."""
    argv, path = sys.argv[:], sys.path[:]
    sys.argv[:] = [program, *arguments]
    sys.path.insert(0, "" if is_module else str(Path(program).resolve().parent))
    try:
        if is_module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            return leaving.code or 0
        print(leaving.code, file=sys.stderr)
        return 1
    except Exception as error:  # the program's own, shown as Python shows it
        if isinstance(error, BrokenPipeError) and nobody_reads():
            return LEFT
        traceback.print_exc()
        return 1
    finally:
        sys.argv[:], sys.path[:] = argv, path
    return 0


def report(account: Account) -> str:
    """Say what the queues gained."""
    stats = account.stats()
    if not stats:
        return (
            "acs-cl run: the program made no queue of PyOpenCL's; one that makes an acs_cl.Runtime "
            "has its measure()\n"
        )
    launches = sum(one["launches"] for one in stats)
    edges: Counter[str] = Counter()
    where: Counter[str] = Counter()
    for one in stats:
        edges.update(one["edges"])
        where[one["backend"]] += one["launches"] - one.get("scheduler", {}).get("tasks", 0)
        where["scheduler on the device"] += one.get("scheduler", {}).get("tasks", 0)
    lines = [
        f"acs-cl run: queues {account.queues}, launches {launches}, edges {sum(edges.values())} "
        f"({_counts(edges) or 'none'}), "
        f"events waited for {sum(one['event_waits'] for one in stats)}",
        f"  ran on: {_counts(where)}",
    ]
    if bypassed := sum(one["bypassed"] for one in stats):
        lines.append(f"  bypassed the runtime, having nothing to run beside: {bypassed}")
    lines += _in_flight([one["timed"] for one in stats if one.get("timed", {}).get("slices")])
    unseen = account.not_understood
    lines.append(f"  commands not understood, so ordered after all: {_counts(unseen) or 'none'}")
    elsewhere = patch.seen_elsewhere
    if elsewhere:
        names = Counter({name.strip("_"): count for name, count in elsewhere.items()})
        lines.append(f"  on queues that are not ours: {_counts(names)}")
    checks = [one["check"] for one in stats if "check" in one]
    if checks:
        sums = {name: sum(one[name] for one in checks) for name in CHECKED}
        unchecked: Counter[str] = Counter()
        for one in checks:
            unchecked.update(one["unchecked"])
        lines.append(
            f"  checked ({checks[0]['modes']}): "
            + ", ".join(f"{name} {sums[name]}" for name in CHECKED)
            + f"; not checked: {_counts(unchecked) or 'nothing'}"
        )
    lines += sorted({f"  {one['why']}" for one in stats})
    return "\n".join(lines) + "\n" + HOW_TO_COMPARE


def _in_flight(timed: list[Report]) -> list[str]:
    """Say how many commands ran at a time, and how many of them have only the times of an epoch."""
    total = sum(one["slices"] for one in timed)
    if not total:
        return []
    overlap = sum(one["overlap"] * one["slices"] for one in timed) / total
    line = f"  commands in flight on the device while there are any: {overlap:.2f}"
    tasks, epochs = (sum(one[key] for one in timed) for key in ("in_epochs", "epochs"))
    if tasks:
        line += f" ({tasks} of them in {epochs} epochs of the scheduler, each counted as one)"
    return [line]


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common() if count)
