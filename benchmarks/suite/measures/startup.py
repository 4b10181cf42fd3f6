"""Time of a program of one kernel to its first result, in a fresh process.

Input: a device. Output: seconds from the start of the interpreter to its end and, by the program's
own clock, from its first line to the value. It is ours over plain PyOpenCL, interleaved, with all
caches empty and with all caches full. Also the time that importing the runtime adds to importing
PyOpenCL.

On some machines PoCL builds nothing before `acs_cl.devices.repair`, so the plain program calls it
too. The cost of that import is measured and subtracted; the call itself counts in both.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from acs_cl.benchmarks.suite.bars import target
from acs_cl.benchmarks.suite.processes import fresh_python
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import ratios, spread

ROUNDS = {False: 15, True: 1}  # by "is quick"
MOST_RATIO = 1.1
MOST_IMPORT_S = 0.3
CACHES = ("XDG_CACHE_HOME", "POCL_CACHE_DIR", "CUDA_CACHE_PATH")

_SOURCE = """SOURCE = '''
kernel void scale(global const float *x, global float *y, float a) {
    int i = get_global_id(0);
    y[i] = a * x[i];
}'''
"""

_BEGIN = "from time import perf_counter\nbegin = perf_counter()\n" + _SOURCE

_END = """
took = perf_counter() - begin - excluded
assert result[5] == 10.0
import json
print(json.dumps({"took_s": took, "excluded_s": excluded}))
"""

PLAIN_BEGIN = """
import sys
import numpy as np
import pyopencl as cl
start = perf_counter()
from acs_cl import devices
excluded = perf_counter() - start
there = [device for platform in cl.get_platforms() for device in platform.get_devices()]
device = there[int(sys.argv[1])]
devices.repair(device)
context = cl.Context([device])
queue = cl.CommandQueue(context)
program = cl.Program(context, SOURCE).build()
"""

_PLAIN = """
scale = program.scale
scale.set_scalar_arg_dtypes([None, None, np.float32])
host = np.arange(64, dtype=np.float32)
x = cl.Buffer(context, cl.mem_flags.READ_WRITE, host.nbytes)
y = cl.Buffer(context, cl.mem_flags.READ_WRITE, host.nbytes)
cl.enqueue_copy(queue, x, host)
scale(queue, (64,), None, x, y, 2)
result = np.empty_like(host)
cl.enqueue_copy(queue, result, y)
"""

_OURS = """
import sys
import numpy as np
import acs_cl as acs
excluded = 0.0
rt = acs.Runtime(int(sys.argv[1]))
x, y = rt.array(np.arange(64, dtype=np.float32)), rt.empty(64, np.float32)
rt.build(SOURCE).scale((64,), None, x, y, 2)
result = y.get()
"""

_IMPORT = """
from time import perf_counter
import pyopencl
start = perf_counter()
from acs_cl import Runtime
print(perf_counter() - start)
"""

PROGRAMS = {"plain": _BEGIN + PLAIN_BEGIN + _PLAIN + _END, "ours": _BEGIN + _OURS + _END}


def measure(settings: Settings) -> dict[str, Any]:
    """Measure both programs with cold and warm caches, and the import."""
    rounds = ROUNDS[settings.quick]
    fresh_python(["-c", _IMPORT])  # writes the byte code
    process: dict[tuple[str, str], list[float]] = {}
    inside: dict[tuple[str, str], list[float]] = {}
    imports = []
    for turn in range(rounds):
        names = list(PROGRAMS)[:: 1 if turn % 2 else -1]
        with tempfile.TemporaryDirectory() as folder:
            for state, name in product(("cold", "warm"), names):
                printed, wall_s = fresh_python(
                    ["-c", PROGRAMS[name], str(settings.position)], **caches(Path(folder, name))
                )
                said = json.loads(printed)
                process.setdefault((name, state), []).append(wall_s - said["excluded_s"])
                inside.setdefault((name, state), []).append(said["took_s"])
        imports.append(float(fresh_python(["-c", _IMPORT])[0]))
    rows = {
        state: {"process": _compared(process, state), "inside": _compared(inside, state)}
        for state in ("cold", "warm")
    }
    return {"rows": rows, "import_runtime_s": spread(imports, 4)}


def bars(result: Mapping[str, Any], machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare with the bars. `Runtime` is imported, since the package alone loads nothing."""
    ratios = {state: result["rows"][state]["process"]["ratio"] for state in ("cold", "warm")}
    import_s = result.get("import_runtime_s")
    return [
        target(f"first result of a new process over plain PyOpenCL, {state} caches",
               ratio, "at most", MOST_RATIO, "x")
        for state, ratio in ratios.items()
    ] + [
        target("`from acs_cl import Runtime` in a fresh process, beyond PyOpenCL's own import",
               import_s, "below", MOST_IMPORT_S, "s")
    ]  # fmt: skip


def caches(folder: Path) -> dict[str, str]:
    """Return folders for all caches; make missing ones."""
    paths = {key: folder / key for key in CACHES}
    for path in paths.values():
        path.mkdir(parents=True, exist_ok=True)
    return {key: str(path) for key, path in paths.items()}


def _compared(times: dict[tuple[str, str], list[float]], state: str) -> dict[str, Any]:
    ours, plain = times["ours", state], times["plain", state]
    return {
        "ours_s": spread(ours, 4),
        "plain_s": spread(plain, 4),
        "ratio": spread(ratios(ours, plain)),
    }
