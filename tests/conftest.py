"""Fixtures: the devices there are, and runtimes on every device, backend and policy."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import inside
import pyopencl as cl
import pytest
import sampling
from hypothesis import settings
from pyopencl.tools import clear_first_arg_caches

import acs_cl as acs
from acs_cl import devices, testing
from acs_cl.host.environment import variable

# PoCL's wheel builds nothing on CPUs that are newer than it is, unless this asks for a repair.
os.environ.setdefault("ACS_CL_POCL_CPU", "auto")

# On a busy machine an example takes as long as it takes.
settings.register_profile("here", deadline=None)
settings.load_profile("here")

BACKENDS = ("serial", "out_of_order", "lanes")
POLICIES = ("eager", "ready_first")
CONFIGURATIONS = [(backend, issue) for backend in BACKENDS for issue in POLICIES]
CONFIGURATIONS += [("device", "eager"), ("emulated", "eager")]

LONGEST = (
    "test_traps.py", "test_benchmarks.py", "test_workloads.py", "test_wheel.py", "test_quality.py",
    "test_scheduler_builds.py", "test_watchdog.py", "test_watched.py", "test_signals.py",
    "test_measured_traps.py",
)  # fmt: skip
"""Files that take longest. They come first, so that no process is left alone with one of them."""


Environment = Callable[..., None]
"""Sets environment variables by name, for a test."""

Enter = Callable[[Path], None]
"""Makes a folder the current one, for a test."""


def pytest_report_header() -> str:
    """Which part of large products is taken."""
    return sampling.header()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what other samples take, and put the longest files first."""
    if left := sampling.of_other_samples(items):
        config.hook.pytest_deselected(items=list(left))
    items[:] = sorted(
        (item for item in items if item not in left),
        key=lambda item: item.path.name not in LONGEST,
    )


def pytest_collection_finish() -> None:
    """Thousands of tests live as long as the process: the collector need not visit them each time.
    What measures collects before every sample, and would spend most of its time on them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def little_to_collect() -> None:
    """What lives from one file to the next, as caches do, is not visited again either."""
    gc.collect()
    gc.freeze()


def all_devices() -> list[cl.Device]:
    """Every device of the machine, or of the platforms that the environment names a part of."""
    platform = os.environ.get("ACS_CL_TEST_PLATFORM", "")
    return [device for device in devices.devices() if platform in device.platform.name]


def _name(device: cl.Device) -> str:
    words = device.name.replace("-", " ").split()
    return "_".join(words[:2]) if words else "device"


EACH = [
    pytest.param((device, *configuration), id="-".join((_name(device), *configuration)))
    for device in all_devices()
    for configuration in CONFIGURATIONS
] or [pytest.param(None, id="no device")]
"""Every device with every backend and policy."""


@pytest.fixture(scope="session")
def device() -> cl.Device:
    """The device that a runtime takes by default."""
    try:
        return devices.choose()
    except acs.DeviceError as error:
        pytest.skip(f"no OpenCL device: {error}")


@pytest.fixture(scope="session")
def context(device: cl.Device) -> cl.Context:
    """A context on the default device, in which programs build."""
    return cl.Context([device])


@pytest.fixture(scope="session")
def scheduler(device: cl.Device) -> None:
    """Leave the test out where no scheduler can run on the default device."""
    try:
        acs.Runtime(device, backend="device").close()
    except (acs.DeviceError, acs.UsageError) as error:
        pytest.skip(str(error))


@pytest.fixture(params=[{}, {"bypass": False}, {"backend": "device"}], ids=str)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Options of a queue: it may bypass the runtime, it may not, or it has a scheduler."""
    found: dict[str, Any] = request.param
    if "backend" in found:
        request.getfixturevalue("scheduler")
    return found


@pytest.fixture(params=CONFIGURATIONS, ids="-".join)
def configuration(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A backend and a policy."""
    found: tuple[str, str] = request.param
    return found


@pytest.fixture(params=EACH)
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., acs.Runtime]]:
    """Makes runtimes on each device with each backend and policy; they are closed afterwards."""
    if request.param is None:
        pytest.skip("no OpenCL device")
    device, backend, issue = request.param
    made = []

    def one(**options: Any) -> acs.Runtime:
        try:
            made.append(acs.Runtime(device, backend=backend, issue=issue, **options))
        except acs.DeviceError as error:
            pytest.skip(f"{device.name.strip()} cannot: {error}")
        except acs.UsageError as error:
            if options.get("memory") != "svm" and backend != "device":
                raise
            pytest.skip(str(error))
        return made[-1]

    yield one
    for runtime in made:
        runtime.close()
    # PyOpenCL remembers what it built for a context, and by that the context; GPUs hold few hundred
    clear_first_arg_caches()


@pytest.fixture
def rt(make: Callable[..., acs.Runtime]) -> acs.Runtime:
    """A runtime on each device with each backend and policy."""
    return make()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Environment:
    """Set environment variables for a test; None takes one away."""

    def change(**variables: object) -> None:
        for name, value in variables.items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, str(value))

    return change


@pytest.fixture
def imported_as(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, object], None]:
    """Have a module stand in for another one, for a test; None: that cannot be imported."""
    return partial(monkeypatch.setitem, sys.modules)


@pytest.fixture
def platforms(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Have a function say which platforms the machine has, for a test."""
    return partial(monkeypatch.setattr, cl, "get_platforms")


@pytest.fixture
def core_reads() -> None:
    """The core reads by itself what the program waits for, if that is short."""
    if variable("ACS_CL_WATCHDOG"):
        pytest.skip("a watchdog has Python wait, where it can end the wait: the core reads nothing")


@pytest.fixture
def enter(monkeypatch: pytest.MonkeyPatch) -> Enter:
    """Make a folder the current one, for a test."""
    return monkeypatch.chdir


@pytest.fixture
def own_cache(tmp_path: Path, environment: Environment) -> Iterator[Path]:
    """The folder of a process that knows nothing, and of a machine where none ever ran."""
    folder = tmp_path / "cache"
    environment(ACS_CL_CACHE=folder)
    with inside.new_process():
        yield folder


@pytest.fixture
def without_bypass() -> Iterator[None]:
    """Nothing on an `acs.Queue` bypasses the runtime: every command is a launch."""
    with testing.bypass(always=False):
        yield
