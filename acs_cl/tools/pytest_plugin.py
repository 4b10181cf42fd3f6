"""A pytest plugin: run one test on several backends, and suites of PyOpenCL on our queues.

Input: tests that use the fixture `acs_runtime`, and the options `--acs-cl-backends` and
`--acs-cl-check`. Output: such a test runs once for each backend, issue policy and seed, with
runtimes that check the declarations of its kernels. PyTest finds this by an entry point and loads
it in every run. So nothing is imported here before a test asks for the fixture.

With ``--acs`` every `pyopencl.CommandQueue` of a suite is an `acs_cl.Queue`, under checks. The end
of the run tells what the queues gained and what was checked.

    def test_step(acs_runtime):
        rt = acs_runtime()
        prog = rt.build(SOURCE)
        x = rt.zeros(64)
        prog.step((64,), None, x, reads=x[:32])  # CheckError, if `step` reads more
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple  # records would load NumPy

import pytest


class Suite(NamedTuple):
    """A run with `--acs`: how to restore everything, and the report."""

    ends: ExitStack
    report: Callable[[], str]


SUITE = pytest.StashKey[Suite]()

BACKENDS = ("serial", "out_of_order", "lanes", "device")
OTHERS = ("auto", "emulated")
"""Backends that run only if they are named."""
POLICIES = ("eager", "ready_first")
CHECKS = "access,order"
QUEUE_CHECKS = "access"
"""The default checks of `--acs`."""
CANNOT = "backend='device'"
"""The beginning of an error that says why a device has no such backend."""
SEEDS = 2
"""Seeds of orders for each backend and policy."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the command line."""
    group = parser.getgroup("acs_cl", "kernels launched by acs_cl")
    group.addoption(
        "--acs", action="store_true", default=False,
        help="every pyopencl.CommandQueue is an acs_cl.Queue, under the checks of --acs-cl-check "
        f"('{QUEUE_CHECKS}' by default)",
    )  # fmt: skip
    group.addoption(
        "--acs-cl-backends", metavar="NAMES", default=None,
        help="backends for the fixture acs_runtime, such as 'serial,lanes' or "
        "'lanes:ready_first'; all but 'auto' and 'emulated' with all policies by default",
    )  # fmt: skip
    group.addoption(
        "--acs-cl-check", metavar="CHECKS", default=None,
        help=f"checks for the fixture acs_runtime, such as 'access,uninitialised'; "
        f"'{CHECKS}' by default, 'off' for none",
    )  # fmt: skip
    group.addoption(
        "--acs-cl-seeds", metavar="N", type=int, default=SEEDS,
        help="how many seeds of the check 'order' are tried for each of them (%(default)s)",
    )  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Replace queues before anything of the suite is imported, if `--acs` asks for it."""
    said = early_config.known_args_namespace
    if not getattr(said, "acs", False):
        return
    from ..host.environment import changed
    from . import run_script

    check = QUEUE_CHECKS if said.acs_cl_check is None else said.acs_cl_check
    backend = said.acs_cl_backends or ""
    there = (*BACKENDS, *OTHERS)
    if backend and backend not in there:
        raise pytest.UsageError(
            f"--acs-cl-backends={backend}: with --acs it is one of {', '.join(there)}"
        )
    run_script.repair_devices()
    ends = ExitStack()
    if check != "off":
        ends.enter_context(changed({"ACS_CL_CHECK": check}))
    options = {"backend": backend} if backend else {}
    account = ends.enter_context(run_script.replaced_queues(options))
    early_config.stash[SUITE] = Suite(ends, lambda: run_script.report(account))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Report what the queues of a suite gained, and what was checked."""
    suite = config.stash.get(SUITE, None)
    if suite is not None:
        text = suite.report().partition("\n  --compare")[0].removeprefix("acs-cl run: ")
        if config.pluginmanager.hasplugin("dsession"):  # pytest-xdist: tests run elsewhere
            text = "queues were those of pytest-xdist's processes: nothing is summed up"
        terminalreporter.section("acs_cl")
        terminalreporter.write_line(text.rstrip("\n"))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Restore PyOpenCL's queues."""
    suite = config.stash.get(SUITE, None)
    if suite is not None:
        suite.ends.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one run for each configuration and seed."""
    if "acs_runtime" not in metafunc.fixturenames:
        return
    config = metafunc.config
    check = config.getoption("--acs-cl-check")
    check = CHECKS if check is None else "" if check == "off" else check
    ordered = "order" in [word.strip() for word in check.split(",")]
    seeds = range(max(1, config.getoption("--acs-cl-seeds"))) if ordered else range(1)
    cases = []
    for backend, issue in configurations(config.getoption("--acs-cl-backends")):
        for seed in seeds:
            name = f"{backend}-{issue}" + (f"-{seed}" if ordered else "")
            words = [f"order={seed}" if word.strip() == "order" else word
                     for word in check.split(",")]  # fmt: skip
            cases.append(pytest.param((backend, issue, ",".join(words)), id=name))
    metafunc.parametrize("acs_runtime", cases, indirect=True)


def configurations(given: str | None) -> list[tuple[str, str]]:
    """Return backends and policies. 'lanes' alone stands for it with each policy that differs
    there."""
    if given is None:
        given = ",".join(BACKENDS)
    found = []
    for word in given.split(","):
        backend, colon, issue = word.strip().partition(":")
        if backend not in (*BACKENDS, *OTHERS) or (colon and issue not in POLICIES):
            raise pytest.UsageError(
                f"--acs-cl-backends={given}: there is no {word!r}; there are: "
                f"{', '.join((*BACKENDS, *OTHERS))}, each with or without :{' or :'.join(POLICIES)}"
            )
        several = POLICIES if backend in ("out_of_order", "lanes") else POLICIES[:1]
        found += [(backend, issue)] if colon else [(backend, one) for one in several]
    return found


@pytest.fixture
def acs_runtime(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Give a function that makes runtimes. It takes the options of `acs_cl.Runtime` except
    `backend`, `issue` and `check`, which come from this run. Runtimes are closed after the test,
    and an error found by a check then fails it."""
    import acs_cl as acs  # not before: it loads the OpenCL driver

    if not hasattr(request, "param"):
        raise acs.UsageError(
            "acs_runtime: name it among the arguments of the test or of a fixture, since the test "
            "runs once for each backend; request.getfixturevalue comes too late for that"
        )
    backend, issue, check = request.param
    made: list[acs.Runtime] = []

    def make(device: Any = None, **options: Any) -> acs.Runtime:
        if given := {"backend", "issue", "check"} & options.keys():
            raise acs.UsageError(
                f"acs_runtime: leave out {', '.join(sorted(given))}, which this run of pytest "
                "chooses, by --acs-cl-backends and --acs-cl-check"
            )
        try:
            runtime = acs.Runtime(device, backend=backend, issue=issue, check=check, **options)
        except acs.DeviceError as error:
            pytest.skip(f"no runtime here: {error}")
        except acs.UsageError as error:
            if not str(error).startswith(CANNOT):  # an option is wrong
                raise
            pytest.skip(f"backend 'device': {error}")
        made.append(runtime)
        return runtime

    yield make
    errors = []
    for runtime in made:
        try:
            runtime.close()
        except acs.AcsError as error:
            errors.append(error)
    if errors:
        raise errors[0]
