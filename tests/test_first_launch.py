"""The first launch of a kernel: what is not made for it, and that nobody misses it."""

from __future__ import annotations

import ast
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


OTHERS = f"""
import sys, threading
import pyopencl as cl
import acs_cl as acs
from acs_cl.devices.invokers import invokers_later
with acs.Runtime() as runtime:
    program = runtime.build('''{SOURCE}''')
    program.add
    assert "pyopencl.invoker" not in sys.modules
    def other():
        made.append(cl.Kernel(program.native, "times"))
    made = []
    with invokers_later():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        made.append(cl.Kernel(program.native, "add"))
    import pyopencl.invoker
    assert "acs_cl" not in pyopencl.invoker.generate_enqueue_and_set_args.__module__
    buffer = cl.Buffer(runtime.context, cl.mem_flags.READ_WRITE, 32)
    queue = cl.CommandQueue(runtime.context)
    for kernel in made:
        kernel.set_scalar_arg_dtypes([None, "f4"])
        kernel(queue, (8,), None, buffer, 1)
    queue.finish()
"""


def test_another_thread_loads_the_functions_for_its_kernels(tmp_path: Path) -> None:
    printed_twice(OTHERS, tmp_path)


PROGRAM = f"""
import sys
import acs_cl as acs
with acs.Runtime() as runtime:
    x = runtime.zeros(8)
    runtime.build('''{SOURCE}''').add((8,), None, x, 1)
    assert x.get()[0] == 1.0
print({{"acs_cl.opencl_c.modes.bodies", "clang.cindex", "pcpp"}} & set(sys.modules))
"""


UNUSED = (
    *("decimal", "filecmp", "queue", "signal", "statistics", "subprocess"),
    *("acs_cl.access.policies", "acs_cl.graph.many"),
    *("acs_cl.launch.watchdog", "acs_cl.observe", "acs_cl.scheduler.proof"),
)
"""Modules that a program of a few launches has no use for. Each makes its start longer."""

QUEUE = f"""
import sys
import pyopencl as cl
import pyopencl.array
theirs = set(sys.modules)
import acs_cl as acs
queue = acs.Queue(acs.Runtime().context)
x = cl.array.zeros(queue, 8, "f4")
add = cl.Program(queue.context, '''{SOURCE}''').build().add
add(queue, (8,), None, x.data, cl.cltypes.float(1))
assert x.get()[0] == 1.0
print({{*{UNUSED!r}}} & (set(sys.modules) - theirs))
"""


def printed_twice(program: str, folder: Path) -> list[str]:
    """Run a program with an empty cache, and then with a full one. Return what each run printed."""
    words = {**os.environ, "ACS_CL_CACHE": str(folder)}
    return [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=words,
            timeout=300,
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip


def test_a_kernel_seen_before_loads_no_parser(tmp_path: Path) -> None:
    said = printed_twice(PROGRAM, tmp_path)
    assert "clang.cindex" in said[0]
    assert said[1] == "set()"


def test_a_program_of_few_launches_loads_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    program = f"import pyopencl, sys; theirs = set(sys.modules)\n{PROGRAM}"
    unused = {*UNUSED, "pyopencl.invoker", "pytools.py_codegen"}
    program += f"print({unused!r} & (set(sys.modules) - theirs))"
    assert printed_twice(program, tmp_path)[1].splitlines()[-1] == "set()"


def test_nor_does_one_on_a_queue(tmp_path: Path) -> None:
    assert printed_twice(QUEUE, tmp_path)[1] == "set()"


EXPRESSIONS = f"""
import json, re, sys
import pyopencl, pyopencl.invoker
compiled, made = [], re._compile
def compile(pattern, flags):
    if (type(pattern), pattern, flags) not in re._cache:
        compiled.append((pattern, sys._getframe(2).f_globals["__name__"]))
    return made(pattern, flags)
re._compile = compile
{PROGRAM}
print([one for one in compiled if one[1].startswith("acs_cl")])
"""


def test_a_program_of_few_launches_compiles_few_expressions(tmp_path: Path) -> None:
    """Python needs a tenth of a millisecond for one."""
    said = printed_twice(EXPRESSIONS, tmp_path)[1].splitlines()[-1]
    assert len(ast.literal_eval(said)) <= 2, said
