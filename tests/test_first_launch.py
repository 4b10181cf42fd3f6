"""The first launch of a kernel: what is not made for it, and that nobody misses it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest
from pyopencl import invoker

import acs_cl as acs
from acs_cl.devices.driver import OwnKernel

SOURCE = """
kernel void add(global float *x, float a) { x[get_global_id(0)] += a; }
kernel void times(global float *y, float b) { y[get_global_id(0)] *= b; }
"""


def test_the_runtimes_own_kernel_is_called_like_any_other(device: cl.Device) -> None:
    with acs.Runtime(device) as runtime:
        program = runtime.build(SOURCE)
        x = runtime.zeros(8)
        program.add((8,), None, x, 1)
        queue = cl.CommandQueue(runtime.context)
        buffer = cl.Buffer(runtime.context, cl.mem_flags.READ_WRITE, 32)
        cl.enqueue_fill_buffer(queue, buffer, np.float32(0), 0, 32)
        called, given = program.add.native, OwnKernel(program.native, "add")
        told = OwnKernel(program.native, "add")
        with pytest.raises(TypeError):
            given(queue, (8,), None, buffer)
        called(queue, (8,), None, buffer, np.float32(2))
        called(queue, (8,), None, buffer, np.float32(4))
        given.set_args(buffer, np.float32(8))
        cl.enqueue_nd_range_kernel(queue, given, (8,), None)
        told.set_scalar_arg_dtypes([None, np.float32])
        told(queue, (8,), None, buffer, 16)
        seen = np.empty(8, "f4")
        cl.enqueue_copy(queue, seen, buffer)
        program.add((8,), None, x, 1)
        assert seen.tolist() == [30.0] * 8
        assert x.get().tolist() == [2.0] * 8


def test_pyopencls_own_kernels_get_their_functions_as_ever(
    device: cl.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread makes kernels while one of ours is being made."""
    real, asked = invoker.generate_enqueue_and_set_args, []

    def counting(*arguments: object, **named: object) -> object:
        asked.append(threading.get_ident())
        return real(*arguments, **named)

    monkeypatch.setattr(invoker, "generate_enqueue_and_set_args", counting)
    with acs.Runtime(device) as runtime:
        program = runtime.build(SOURCE)
        stop = threading.Event()

        def ours() -> None:
            while not stop.is_set():
                OwnKernel(program.native, "add")

        thread = threading.Thread(target=ours)
        thread.start()
        for _ in range(200):
            cl.Kernel(program.native, "add")
        stop.set()
        thread.join()
        assert asked == [threading.get_ident()] * 200
        assert invoker.generate_enqueue_and_set_args is counting


PROGRAM = f"""
import sys
import acs_cl as acs
with acs.Runtime() as runtime:
    x = runtime.zeros(8)
    runtime.build('''{SOURCE}''').add((8,), None, x, 1)
    assert x.get()[0] == 1.0
print({{"acs_cl.opencl_c.modes.bodies", "clang.cindex", "pcpp"}} & set(sys.modules))
"""


def test_a_kernel_seen_before_loads_no_parser(tmp_path: Path) -> None:
    words = {**os.environ, "ACS_CL_CACHE": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=words,
            timeout=300,
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert "clang.cindex" in said[0]
    assert said[1] == "set()"
