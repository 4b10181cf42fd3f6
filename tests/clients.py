"""Real clients: PyOpenCL and packages on top of it, on their own queue and on ours.

`make clients` (or `python tests/clients.py [NAME …] [--list]`) makes virtual environments in
build/clients, fetches the packages and their sources by pip, and does two things with each:

- It runs the package's own tests twice, unchanged: on `pyopencl.CommandQueue`, and with every queue
  an `acs.Queue`, as `acs-cl run -m pytest` does. Every test has to end the same way in both.
- It measures a small program of the package on both queues in turns (`client_speed.py`), and
  compares what comes out. `--only tests` and `--only speed` leave out the other.

The outcome is written to benchmarks/results/clients.json, of which docs/measurements/clients.md
shows tables. Nothing that was fetched is kept elsewhere.

`--check access` runs them once more on our queues, with what is declared and inferred for their
kernels checked: a wrong range fails the test that launches it.

A test that ends the process, as drivers make some do, is noted as crashed, and the rest goes on.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import os
import re
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

from client_list import CLIENTS, Client, program_of
from client_outcomes import side_by_side
from client_speed import measure

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "acs_cl" / "host"))  # alone: the package is in no environment yet
from progress import Progress  # noqa: E402

say = Progress()
PLACE = ROOT / "build" / "clients"
TABLE = ROOT / "benchmarks" / "results" / "clients.json"
CRASHES = 5
"""So many of them end a file."""


# Runs in the client's environment: pytest, with the outcome of each test in a file as it comes.
RUNNER = """
import json, runpy, sys
from acs_cl import devices
for device in devices.devices():
    devices.repair(device)
import pytest
where, before, *options = sys.argv[1:]
exec(before)
class Notes:
    def __init__(self):
        self.file = open(where, "a")
        self.worst = "passed"
    def note(self, what, name):
        print(json.dumps([what, name]), file=self.file, flush=True)
    def pytest_runtest_logstart(self, nodeid, location):
        self.worst = "passed"
        self.note("started", nodeid)
    def pytest_runtest_logreport(self, report):
        if report.outcome != "passed" and self.worst != "failed":
            self.worst = report.outcome
    def pytest_runtest_logfinish(self, nodeid, location):
        self.note(self.worst, nodeid)
sys.exit(pytest.main(options, plugins=[Notes()]))
"""


def main() -> int:
    """Fetch, run, compare; 0 if every test ends the same way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CLIENTS)}")
    parser.add_argument("--list", action="store_true", help="say what there is")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one file")
    parser.add_argument("--seconds", type=float, default=10, help="for each measured program")
    parser.add_argument("--processes", type=int, default=1, help="of each side, to measure")
    parser.add_argument(
        "--before-others", action="store_true", help="measure at a real-time priority"
    )
    parser.add_argument("--only", choices=("tests", "speed"), help="leave out the other")
    parser.add_argument("--no-fetch", action="store_true", help="use what is there")
    parser.add_argument("--check", metavar="CHECKS", help="only this: on acs.Queue, under checks")
    args = parser.parse_args()
    if args.list:
        print("\n".join(CLIENTS))
        return 0
    names = args.names or list(CLIENTS)
    try:
        return _all(args, names)
    except KeyboardInterrupt:
        print(f"interrupted; {TABLE} has what was found", file=sys.stderr)
        return 130
    finally:
        say.end()


def _all(args: argparse.Namespace, names: list[str]) -> int:
    different = 0
    for index, name in enumerate(names):
        say(name, index / len(names))
        client = CLIENTS[name]
        if not args.no_fetch:
            environment(client.environment)
            fetch(client)
        if args.check:
            found = checked(client, args.timeout, args.check)
            different += len(found["failed"])
            note(name, {"checked": found})
            continue
        if args.only != "speed" and client.suites:
            found = compare(client, args.timeout)
            different += len(found["different"])
            note(name, {"tests": found})
        if args.only != "tests":
            note(name, {"speed": speed(client, name, args)})
    write_page()
    return 1 if different else 0


def note(name: str, found: dict[str, dict[str, Any]]) -> None:
    """Keep an outcome, beside those of other devices."""
    record = json.loads(TABLE.read_text("utf-8")) if TABLE.exists() else {"clients": {}}
    known = record["clients"].setdefault(name, {})
    for what, outcome in found.items():
        known[what] = {**known.get(what, {}), **outcome} if what == "speed" else outcome
        print(f"{name}, {what}: {json.dumps(outcome)[:400]}", flush=True)
    new = TABLE.with_suffix(".new")
    new.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    new.replace(TABLE)


def speed(client: Client, name: str, args: argparse.Namespace) -> dict[str, Any]:
    """The client's program in turns, by device."""
    program = program_of(name)
    if program is None:
        return {}
    how = args.seconds, args.processes, args.before_others
    found = measure(str(python(client)), program, ["auto"], *how)
    device = found.pop("device").split(" / ")[1]
    return {device: {"date": datetime.date.today().isoformat(), **found}}


def write_page() -> None:
    """The tables for people."""
    report = [str(python(CLIENTS["pyopencl"])), "-m", "acs_cl.benchmarks", "report"]
    subprocess.run(report, cwd=PLACE, check=False)


def python(client: Client) -> Path:
    """The client's interpreter."""
    return PLACE / client.environment / "bin" / "python"


@functools.cache
def environment(name: str) -> None:
    """A virtual environment with this package in it, which compiles the core: once for all that
    share it."""
    folder = PLACE / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not (folder / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip(name, "install", "--quiet", "--editable", f"{ROOT}[pocl]", "pytest", "mako")


def pip(name: str, *arguments: str) -> None:
    """Of that environment."""
    interpreter = PLACE / name / "bin" / "python"
    command = [interpreter, "-m", "pip", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True)


def fetch(client: Client) -> None:
    """The package, and its sources of the same version."""
    pip(client.environment, "install", "--quiet", client.package, *client.needs)
    if sources(client) or all(one.startswith(("module:", "/")) for one in client.suites):
        return
    package = f"{client.package}=={version(client)}"
    target = PLACE / "archives"
    only = "--quiet", "--no-deps", "--no-binary", client.package
    pip(client.environment, "download", *only, package, "-d", str(target))
    for archive in target.glob("*.tar.gz"):
        with tarfile.open(archive) as opened:
            opened.extractall(PLACE / "sources", filter="data")


def version(client: Client, package: str = "") -> str:
    """What is installed of the client's package, or of another."""
    code = f"import importlib.metadata as m; print(m.version({package or client.package!r}))"
    command = [python(client), "-c", code]
    done = subprocess.run(command, cwd=PLACE, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def sources(client: Client) -> Path | None:
    """The folder of its sources."""
    wanted = client.package.replace("-", "_").lower()
    folders = (PLACE / "sources").glob("*-*")
    return next((one for one in folders if one.name.lower().startswith(f"{wanted}-")), None)


def folder(client: Client) -> Path:
    """Where its tests are run, if they are apart: beside the package's sources these would be
    imported."""
    if all(one.startswith(("module:", "/")) for one in client.suites):
        return PLACE
    found = sources(client)
    assert found is not None, f"the sources of {client.package} were not fetched"
    return found / "test" if (found / "test").exists() else found


def compare(client: Client, timeout_s: float) -> dict[str, Any]:
    """Run all files both ways."""
    plain: dict[str, str] = {}
    ours: dict[str, str] = {}
    for file in client.suites:
        plain |= run_file(client, file, False, timeout_s)
        ours |= run_file(client, file, True, timeout_s)
    assert plain, f"no test of {client.package} was found"
    return {
        "version": version(client),
        "with": versions(client),
        "date": datetime.date.today().isoformat(),
        "limit_s": timeout_s,
        "suites": [os.path.relpath(one, ROOT) if one[0] == "/" else one for one in client.suites],
        **side_by_side(plain, ours),
        "left out": dict(client.crashing),
        "without": client.without,
    }


def checked(client: Client, timeout_s: float, checks: str) -> dict[str, Any]:
    """Run all files on our queues under checks, and those that fail there on their own."""
    ours: dict[str, str] = {}
    plain: dict[str, str] = {}
    looked: Counter[str] = Counter()
    for file in client.suites:
        here = run_file(client, file, True, timeout_s, checks)
        ours |= here
        looked.update(looked_at())
        if not {*here.values()} <= {"passed", "skipped"}:
            plain |= run_file(client, file, False, timeout_s)
    return {
        "checks": checks,
        "date": datetime.date.today().isoformat(),
        "acs.Queue": dict(Counter(ours.values())),
        "looked at": dict(looked),
        "failed": sorted(
            test for test, how in ours.items()
            if how not in ("passed", "skipped") and plain.get(test) in ("passed", None)
        ),
    }  # fmt: skip


def looked_at() -> dict[str, int]:
    """What the report of the last run says that checks did."""
    report = PLACE / "report.txt"
    text = report.read_text("utf-8") if report.exists() else ""
    found = re.search(r"^  checked \(.*?\): (.*?);", text, re.MULTILINE)
    pairs = [part.rsplit(" ", 1) for part in found[1].split(", ")] if found else []
    return {name: int(count) for name, count in pairs}


def run_file(
    client: Client, file: str, with_ours: bool, timeout_s: float, checks: str = ""
) -> dict[str, str]:
    """The outcome of each test of one file."""
    outcome: dict[str, str] = {}
    where = PLACE / f"outcome-{os.getpid()}.jsonl"
    runner = PLACE / "runner.py"
    runner.write_text(RUNNER, encoding="utf-8")
    # or a package without settings of its own would be tested with this project's
    (PLACE / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for _ in range(CRASHES):
        where.unlink(missing_ok=True)
        command = [str(python(client))]
        if with_ours:
            report = PLACE / "report.txt"
            report.unlink(missing_ok=True)
            command = [
                str(python(client).with_name("acs-cl")),
                "run",
                "--no-trace",
                f"--out={report}",
            ]
        command += [str(runner), str(where), client.before]
        command += ["-q", "-p", "no:cacheprovider", "--tb=no"]
        command += [f"--rootdir={folder(client)}"]
        command += [
            *with_options(client),
            *chosen(file),
            *(f"--deselect={test}" for test in outcome),
        ]
        try:
            subprocess.run(
                command, cwd=folder(client), check=False, timeout=timeout_s,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={
                    **os.environ, **dict(client.variables),
                    **({"ACS_CL_CHECK": checks} if checks else {}),
                },
            )  # fmt: skip
            timed_out = False
        except subprocess.TimeoutExpired:
            timed_out = True
        running = ""
        for line in where.read_text("utf-8").splitlines() if where.exists() else ():
            what, name = json.loads(line)
            running = name if what == "started" else ""
            if not running:
                outcome[name] = what
        if not running:
            if not outcome:
                outcome[file] = "not run"  # nothing of it could even be imported
            break
        outcome[running] = "timed out" if timed_out else "crashed"
        if timed_out:
            break
    return outcome


def with_options(client: Client) -> list[str]:
    """What pytest is told."""
    options = list(client.options)
    if client.crashing:
        chosen = [options[options.index("-k") + 1]] if "-k" in options else []
        options += ["-k", " and ".join([*chosen, *(f"not {name}" for name, _ in client.crashing)])]
    return options


def chosen(file: str) -> list[str]:
    """A suite, as pytest takes it. One of ours does without what this project's tests need."""
    name = file.removeprefix("module:")
    if name != file:
        return ["--pyargs", name]
    return ["--noconftest", file] if file.startswith("/") else [file]


def versions(client: Client) -> dict[str, str]:
    """Of what everything ran with."""
    code = (
        "import acs_cl, pyopencl as cl; from acs_cl import devices; d = devices.choose();"
        "print(devices.full_name(d) + ', ' + d.driver_version.strip()); print(acs_cl.__version__)"
    )
    command = [python(client), "-c", code]
    done = subprocess.run(command, cwd=PLACE, check=True, capture_output=True, text=True)
    device, ours = done.stdout.strip().splitlines()[-2:]
    return {
        "device": device,
        "acs_cl": ours,
        "pyopencl": version(client, "pyopencl"),
        "python": sys.version.split()[0],
    }


if __name__ == "__main__":
    raise SystemExit(main())
