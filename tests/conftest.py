"""Fixtures: the devices there are, and runtimes on every backend and policy."""

from __future__ import annotations

from collections.abc import Iterator

import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl import devices

BACKENDS = ("serial", "out_of_order", "lanes")
POLICIES = ("eager", "ready_first")


def all_devices() -> list[cl.Device]:
    """Every device of the machine."""
    return devices.devices()


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


@pytest.fixture(params=[(b, p) for b in BACKENDS for p in POLICIES], ids="-".join)
def rt(request: pytest.FixtureRequest, device: cl.Device) -> Iterator[acs.Runtime]:
    """A runtime on each backend with each policy."""
    backend, issue = request.param
    with acs.Runtime(device, backend=backend, issue=issue) as runtime:
        yield runtime
