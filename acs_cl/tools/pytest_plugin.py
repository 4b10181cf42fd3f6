"""A pytest plugin: one test over backends, issue policies and orders, under checks.

In: tests that use the fixture `acs_runtime`, and the options `--acs-cl-backends` and
`--acs-cl-check`. Out: such a test runs once for each backend, issue policy and seed, with runtimes
that check what its kernels declare. PyTest finds this by an entry point and loads it in every run,
so nothing is imported here before a test asks for the fixture.

    def test_step(acs_runtime):
        rt = acs_runtime()
        prog = rt.build(SOURCE)
        x = rt.zeros(64)
        prog.step((64,), None, x, reads=x[:32])  # CheckError, if `step` reads more
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

BACKENDS = ("serial", "out_of_order", "lanes", "device")
OTHERS = ("auto", "emulated")
"""Those that run where they are named."""
POLICIES = ("eager", "ready_first")
CHECKS = "access,order"
SEEDS = 2
"""Seeds of orders for each backend and policy."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """What can be said on the command line."""
    group = parser.getgroup("acs_cl", "kernels launched by acs_cl")
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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One run for each configuration and seed."""
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
    """Backends and policies: 'lanes' stands for it with each policy that makes a difference."""
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
    """Makes a runtime: `acs_runtime(…)` takes the options of `acs_cl.Runtime` but for `backend`,
    `issue` and `check`, which are those of this run. Runtimes are closed when the test is over, and
    what a check finds then fails it."""
    import acs_cl as acs  # not before: it loads the OpenCL driver

    backend, issue, check = request.param
    made: list[Any] = []

    def make(device: Any = None, **options: Any) -> Any:
        try:
            runtime = acs.Runtime(device, backend=backend, issue=issue, check=check, **options)
        except acs.DeviceError as error:
            pytest.skip(f"no runtime here: {error}")
        except acs.UsageError as error:
            if backend != "device":
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
