"""Keep the sources that Python programs build while they run, PyOpenCL's own generators among them.

Input: a folder, and a program to run, or none. Output: a source and its options in the folder for
each program that was built, with a name made from its contents. Invariant: the program behaves as
without it.
"""

from __future__ import annotations

import hashlib
import importlib
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def _pyopencl(name: str) -> Any:
    return importlib.import_module(f"pyopencl.{name}")


def capture(folder: Path, program: Sequence[str]) -> None:
    """Run a Python program (`-m module` or a file, with arguments); keep what it builds."""
    hook(folder)
    name, *rest = program
    if name == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(program)
        runpy.run_path(name, run_name="__main__")


def hook(folder: Path) -> None:
    """Write source and options of each program that is built from now on to `folder`."""
    import pyopencl as cl

    from acs_cl import devices

    for device in devices.devices():
        devices.repair(device)  # some drivers build nothing before
    folder.mkdir(parents=True, exist_ok=True)
    original = cl.Program.build

    def build(self: Any, options: Any = (), *arguments: Any, **named: Any) -> Any:
        result = original(self, options, *arguments, **named)
        source = getattr(self, "_source", None)
        if source:
            given = options if isinstance(options, str) else " ".join(map(str, options or ()))
            name = hashlib.sha256(f"{source}\0{given}".encode()).hexdigest()[:16]
            (folder / f"{name}.cl").write_text(source, "utf-8")
            (folder / f"{name}.options").write_text(given, "utf-8")
        return result

    cl.Program.build = build  # type: ignore[method-assign]


def generate(folder: Path) -> None:
    """Have PyOpenCL's generators build what they build for common types; keep that."""
    import numpy as np
    import pyopencl as cl

    from acs_cl import devices

    cla, clmath, clrandom = _pyopencl("array"), _pyopencl("clmath"), _pyopencl("clrandom")
    hook(folder)
    context = cl.Context([devices.choose()])
    queue = cl.CommandQueue(context)
    for kind in (np.float32, np.float64, np.int32, np.complex64):
        x = cla.to_device(queue, np.arange(1, 65).astype(kind))
        i = cla.to_device(queue, np.arange(64)[::-1].astype(np.int32).copy())
        y = 2 * x + x * x - x / 3
        for action in (
            lambda x=x: [x**2, x**x, 2**x],
            lambda x=x: [-x, abs(x), x.copy(), x.real, x.imag, x.conj(), x.fill(1)],
            lambda x=x, y=y: [cla.sum(x), cla.dot(x, y), cla.vdot(x, y), cla.max(x), cla.min(x)],
            lambda x=x, i=i: [cla.take(x, i), cla.multi_take([x, x], i)],
            lambda x=x, i=i: [cla.concatenate((x, x)), x.reverse()],
            lambda x=x, y=y: [cla.maximum(x, y), cla.if_positive(x, x, y), x == y, x < y],
            lambda x=x: [clmath.sin(x), clmath.exp(x), clmath.sqrt(x), clmath.fabs(x)],
            lambda x=x: [clmath.atan2(x, x), clmath.fmod(x, x), clmath.ldexp(x, x)],
        ):
            _attempt(action)
    for generator in (clrandom.PhiloxGenerator, clrandom.ThreefryGenerator):
        for kind in (np.float32, np.float64, np.int32):
            _attempt(lambda g=generator, k=kind: g(context).uniform(queue, 64, k, a=0, b=9))
            _attempt(lambda g=generator, k=kind: g(context).normal(queue, 64, k))
    _attempt(lambda: _scans(context, queue))
    _attempt(
        lambda: _pyopencl("reduction").ReductionKernel(
            context, np.float32, "0", "a+b", map_expr="x[i]*y[i]",
            arguments="__global float *x, __global float *y",
        )
    )  # fmt: skip
    queue.finish()


def _scans(context: Any, queue: Any) -> None:
    """Run the generators of PyOpenCL that need Mako."""
    import numpy as np

    cla, algorithm, scan = _pyopencl("array"), _pyopencl("algorithm"), _pyopencl("scan")
    bitonic_sort, elementwise = _pyopencl("bitonic_sort"), _pyopencl("elementwise")
    for kind in (np.int32, np.float32):
        x = cla.to_device(queue, np.arange(64).astype(kind))
        _attempt(lambda x=x: bitonic_sort.BitonicSort(context)(x))
        _attempt(lambda x=x: algorithm.unique(x))
        for what in (algorithm.copy_if, algorithm.remove_if, algorithm.partition):
            _attempt(lambda f=what, x=x: f(x, "ary[i] > 3"))
        add = scan.InclusiveScanKernel(context, kind, "a+b", neutral="0")
        _attempt(lambda x=x, add=add: add(x))
    keys = [elementwise.VectorArg(np.int32, "keys")]
    sort = algorithm.RadixSort(context, keys, key_expr="keys[i]", sort_arg_names=["keys"])
    _attempt(lambda: sort(cla.to_device(queue, np.arange(64, dtype=np.int32)), key_bits=16))
    lists = algorithm.ListOfListsBuilder(
        context, [("pairs", np.int32)],
        "void generate(LIST_ARG_DECL USER_ARG_DECL index_type i) { APPEND_pairs(i); }", [],
    )  # fmt: skip
    _attempt(lambda: lists(queue, 64))


def _attempt(action: Any) -> None:
    # What a generator does not offer for a type, or in this version, is no finding of ours.
    try:
        action()
    except Exception as error:
        print(f"  left out: {type(error).__name__}: {str(error)[:80]}", file=sys.stderr)
