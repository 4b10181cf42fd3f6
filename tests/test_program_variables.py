"""Kernels that use variables of their program: memory that no argument names, and that a rewritten
version of the kernel, in a program of its own, does not share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import acs_cl as acs
from acs_cl import devices
from acs_cl.devices.facts import facts_of
from acs_cl.errors import BuildError

SOURCE = """
global uint kept[4];
kernel void keep(global uint *y) { int i = get_global_id(0); kept[i] += 1; y[i] = kept[i]; }
"""


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Any:
    """The kernel, in a runtime with the options that the test names."""
    device = devices.choose()
    if "__opencl_c_program_scope_global_variables" not in (facts_of(device).features or ()):
        pytest.skip(f"{device.name.strip()} has no variables of programs")
    with acs.Runtime(device, **request.param) as rt:
        yield rt, rt.build(SOURCE, ["-cl-std=CL3.0"]).keep


@pytest.mark.parametrize("keep", [{}, {"backend": "lanes"}, {"memory": "buffers"}], indirect=True)
def test_launches_that_use_them_run_in_program_order(keep: Any) -> None:
    rt, kernel = keep
    arrays = [rt.zeros(4, "u4") for _ in range(5)]
    for y in arrays:
        kernel((4,), (1,), y)
    first = int(arrays[0].get()[0])
    for step, y in enumerate(arrays):
        np.testing.assert_array_equal(y.get(), first + step)


@pytest.mark.parametrize("backend", ["serial", "out_of_order", "lanes"])
def test_what_a_poisoned_launch_should_have_kept_is_not_read(backend: str) -> None:
    def failing(*arrays: Any) -> None:
        raise RuntimeError("no such luck")

    with acs.Runtime(backend=backend) as rt:
        try:
            kernel = rt.build(SOURCE, ["-cl-std=CL2.0"]).keep
        except BuildError:
            pytest.skip("no variables of programs")
        bad, y = rt.zeros(4, "u4"), rt.zeros(4, "u4")
        rt.call(failing, writes=bad)
        poisoned = kernel((4,), (1,), bad, reads=bad)
        reader = kernel((4,), (1,), y)
        for call in (poisoned.wait, reader.wait, y.get):
            with pytest.raises(acs.PoisonedError, match="no such luck"):
                call()


@pytest.mark.parametrize("keep", [{"check": "access"}, {"check": "order"}], indirect=True)
def test_checks_do_not_run_a_launch_again_that_changes_them(keep: Any) -> None:
    rt, kernel = keep
    seen = []
    for _ in range(6):
        y = rt.zeros(4, "u4")
        kernel((4,), (1,), y)
        seen.append(int(y.get()[0]))
    assert seen == list(range(seen[0], seen[0] + 6))
    found = rt.stats()["check"]
    assert not found["found"]
    assert sum(found["unchecked"].values()) == 6


@pytest.mark.parametrize("keep", [{"backend": "serial", "memory": "buffers"}], indirect=True)
def test_a_view_inside_a_buffer_is_refused_and_nothing_is_lost(keep: Any) -> None:
    rt, kernel = keep
    x = rt.zeros(8, "u4")
    kernel((4,), (1,), x[:4]).wait()
    with pytest.raises(
        acs.UsageError, match=r"launch \d+ of kernel 'keep'.*its own copy of the var"
    ):
        kernel((4,), (1,), x[4:])
    assert int(x.get()[0]) > 0
    assert not x.get()[4:].any()


@pytest.mark.parametrize("keep", [{"backend": "serial"}], indirect=True)
def test_a_decision_on_the_device_is_refused(keep: Any) -> None:
    rt, kernel = keep
    x, flag = rt.zeros(4, "u4"), rt.array([1], "u4")
    with pytest.raises(acs.UsageError, match="its own copy of the variables"):
        kernel((4,), (1,), x, when=flag)
    assert not x.get().any()
