"""Real clients: tests of PyOpenCL and of packages on top of it, on their own queue and on ours.

`make clients` (or `python tests/clients.py [NAME …] [--list]`) makes a virtual environment in
build/clients, fetches the packages and their sources by pip, and runs each client's own tests
twice, unchanged: on `pyopencl.CommandQueue`, and with every queue an `acs.Queue`, which is what
`acs-cl run -m pytest` does. Every test has to end the same way in both. The outcome is written to
docs/clients.json, and as a table to docs/clients.md. Nothing that was fetched is kept elsewhere.

`--check access` runs them once more on our queues, with what is declared and inferred for their
kernels checked: a wrong range fails the test that launches it.

A test that ends the process, as drivers make some do, is noted as crashed, and the rest goes on.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "clients"
PYTHON = PLACE / "venv" / "bin" / "python"
CRASHES = 5
"""So many of them end a file."""


class Client(NamedTuple):
    """A package, its test files below its sources, and what pytest is told besides."""

    package: str
    files: tuple[str, ...]
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    crashing: tuple[tuple[str, str], ...] = ()
    """Tests that end the process at times, then or a while later, on any queue, by a part of their
    names, and why. They are left out."""


CLIENTS = {
    "pyopencl": Client(
        "pyopencl",
        (
            "test_array.py",
            "test_algorithm.py",
            "test_clmath.py",
            "test_clrandom.py",
            "test_enqueue_copy.py",
            "test_arrays_in_structs.py",
            "test_wrapper.py",
        ),
        ("-k", "not large"),
        needs=("mako",),
        crashing=(
            (
                "arrays_with_svm_allocators",
                "PoCL 3.0 frees a wrong address when `clEnqueueSVMFree` runs, in a thread of its "
                "own (`pocl_exec_command`, common.c:671), so that this or the next test crashes",
            ),
        ),
    ),
    "reikna": Client(
        "reikna",
        (
            "test_algorithms/test_reduce.py",
            "test_algorithms/test_scan.py",
            "test_algorithms/test_transpose.py",
            "test_linalg/test_norm.py",
            "test_transformations.py",
        ),
        ("--api=ocl",),
        needs=("numpy>=2",),
    ),
    "loopy": Client(
        "loopy",
        ("test_scan.py", "test_nbody.py"),
        needs=("mako", "islpy<2025.3"),
    ),
    "pyclesperanto_prototype": Client(
        "pyclesperanto-prototype",
        (str(ROOT / "tests" / "client_pyclesperanto.py"),),
        needs=("numpy<2",),
    ),
}

# Runs in the client's environment: pytest, with the outcome of each test in a file as it comes.
RUNNER = """
import json, runpy, sys
from acs_cl import devices
for device in devices.devices():
    devices.repair(device)
import pytest
where, *options = sys.argv[1:]
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
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for one file")
    parser.add_argument("--no-fetch", action="store_true", help="use what is there")
    parser.add_argument("--check", metavar="CHECKS", help="only this: on acs.Queue, under checks")
    args = parser.parse_args()
    if args.list:
        print("\n".join(CLIENTS))
        return 0
    names = args.names or list(CLIENTS)
    table = PLACE.parent.parent / "docs" / "clients.json"
    if not args.no_fetch:
        environment()
    different = 0
    for name in names:
        client = CLIENTS[name]
        if not args.no_fetch:
            fetch(client)
        record = json.loads(table.read_text("utf-8")) if table.exists() else {"clients": {}}
        outcome: dict[str, object] = record["clients"].setdefault(name, {})
        if args.check:
            outcome["checked"] = checked(client, args.timeout, args.check)
            print(f"{name}: {outcome['checked']}")
            different += len(outcome["checked"]["failed"])
        else:
            outcome.update(compare(client, args.timeout))
            different += len(outcome["different"])
            print(f"{name}: {outcome['plain']}; different: {outcome['different'] or 'none'}")
        record["with"] = versions()
        table.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        (table.parent / "clients.md").write_text(as_text(record), encoding="utf-8")
    return 1 if different else 0


def environment() -> None:
    """A virtual environment with this package in it."""
    PLACE.mkdir(parents=True, exist_ok=True)
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", PYTHON.parent.parent], check=True)
    pip("install", "--quiet", "--editable", f"{ROOT}[pocl]", "pytest", "mako")


def pip(*arguments: str) -> None:
    """Of that environment."""
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True)


def fetch(client: Client) -> None:
    """The package, and its sources of the same version."""
    pip("install", "--quiet", client.package, *client.needs)
    if sources(client):
        return
    package = f"{client.package}=={version(client.package)}"
    target = PLACE / "archives"
    pip(
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        client.package,
        package,
        "-d",
        str(target),
    )
    for archive in target.glob("*.tar.gz"):
        with tarfile.open(archive) as opened:
            opened.extractall(PLACE / "sources", filter="data")


def version(package: str) -> str:
    """What is installed."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([PYTHON, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def sources(client: Client) -> Path | None:
    """The folder of its sources."""
    name = client.package.replace("-", "_")
    return next(iter((PLACE / "sources").glob(f"{name}-*")), None)


def folder(client: Client) -> Path:
    """Where its tests are run, if they are apart: beside the package's sources these would be
    imported."""
    found = sources(client)
    assert found is not None, f"the sources of {client.package} were not fetched"
    return found / "test" if (found / "test").exists() else found


def compare(client: Client, timeout_s: float) -> dict[str, object]:
    """Run all files both ways."""
    plain: dict[str, str] = {}
    ours: dict[str, str] = {}
    for file in client.files:
        plain |= run_file(client, file, False, timeout_s)
        ours |= run_file(client, file, True, timeout_s)
    assert plain, f"no test of {client.package} was found"
    different = {
        test: [plain.get(test, "missing"), ours.get(test, "missing")]
        for test in sorted({*plain, *ours})
        if plain.get(test) != ours.get(test)
    }
    return {
        "version": version(client.package),
        "date": datetime.date.today().isoformat(),
        "files": [os.path.relpath(file, ROOT) if file[0] == "/" else file for file in client.files],
        "plain": dict(Counter(plain.values())),
        "acs.Queue": dict(Counter(ours.values())),
        "different": different,
        "left out": dict(client.crashing),
        "not passed on either": sorted(
            test for test, how in plain.items() if how in ("failed", "crashed") == ours.get(test)
        ),
    }


def checked(client: Client, timeout_s: float, checks: str) -> dict[str, object]:
    """Run all files on our queues under checks, and those that fail there on their own."""
    ours: dict[str, str] = {}
    plain: dict[str, str] = {}
    looked: Counter[str] = Counter()
    for file in client.files:
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
    for _ in range(CRASHES):
        where.unlink(missing_ok=True)
        command = [str(PYTHON)]
        if with_ours:
            report = PLACE / "report.txt"
            report.unlink(missing_ok=True)
            command = [str(PYTHON.with_name("acs-cl")), "run", "--no-trace", f"--out={report}"]
        command += [str(runner), str(where), "-q", "-p", "no:cacheprovider", "--tb=no"]
        command += [*with_options(client), file, *(f"--deselect={test}" for test in outcome)]
        try:
            subprocess.run(
                command, cwd=folder(client), check=False, timeout=timeout_s,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={**os.environ, **({"ACS_CL_CHECK": checks} if checks else {})},
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


def versions() -> dict[str, str]:
    """Of what everything ran with."""
    code = (
        "import acs_cl, pyopencl as cl; from acs_cl import devices; d = devices.choose();"
        "print(devices.full_name(d) + ', ' + d.driver_version.strip()); print(acs_cl.__version__)"
    )
    done = subprocess.run([PYTHON, "-c", code], check=True, capture_output=True, text=True)
    device, ours = done.stdout.strip().splitlines()[-2:]
    return {
        "device": device,
        "acs_cl": ours,
        "pyopencl": version("pyopencl"),
        "python": sys.version.split()[0],
    }


def as_text(record: dict[str, dict[str, object]]) -> str:
    """The table for people."""
    about = record["with"]
    lines = [
        "# Clients",
        "",
        "Tests of PyOpenCL and of packages on top of it, run unchanged: on their own in-order",
        "queue, and with every `pyopencl.CommandQueue` an `acs.Queue`. `make clients` fetches",
        "them by pip and writes this.",
        "",
        f"{about['device']}; PyOpenCL {about['pyopencl']}, acs_cl {about['acs_cl']}, "
        f"Python {about['python']}.",
        "",
        "| package | date | on its own queue | on acs.Queue | tests that end differently |",
        "| :-- | :-- | :-- | :-- | :-- |",
    ]
    clients: dict[str, dict[str, object]] = record["clients"]  # type: ignore[assignment]
    for name, one in clients.items():
        different = ", ".join(f"`{test}`" for test in one["different"]) or "none"  # type: ignore
        lines.append(
            f"| {name} {one['version']} | {one['date']} | {counts(one['plain'])} "
            f"| {counts(one['acs.Queue'])} | {different} |"
        )
    for name, one in clients.items():
        for test, why in (one.get("left out") or {}).items():  # type: ignore[attr-defined]
            lines += ["", f"Left out of {name}: `{test}`, since {why}, on its own queue too."]
    for name, one in clients.items():
        if "checked" in one:
            found: dict[str, object] = one["checked"]  # type: ignore[assignment]
            failed = ", ".join(f"`{test}`" for test in found["failed"])  # type: ignore[attr-defined]
            looked: dict[str, int] = found["looked at"]  # type: ignore[assignment]
            lines += [
                "",
                f"{name} on acs.Queue with `ACS_CL_CHECK={found['checks']}`: "
                f"{counts(found['acs.Queue'])}; {looked.get('launches', 0):,} launches of "
                f"{looked.get('kernels', 0):,} kernels, accused: {looked.get('found', 0)}; "
                f"failed though right on its own queue: {failed or 'none'}.",
            ]
    lines += [
        "",
        "What fails, crashes or is skipped on the plain queue is the driver's or the package's "
        "own affair here:",
        "what counts is that every test ends the same way. Files: "
        + "; ".join(f"{name}: {', '.join(one['files'])}" for name, one in clients.items())  # type: ignore
        + ".",
        "",
    ]
    return "\n".join(lines)


def counts(outcome: object) -> str:
    """How many ended how."""
    assert isinstance(outcome, dict)
    return ", ".join(f"{count} {how}" for how, count in sorted(outcome.items()))


if __name__ == "__main__":
    sys.exit(main())
