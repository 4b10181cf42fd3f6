"""Time the first result of a program with many kernels, over plain PyOpenCL.

Both programs run in fresh processes, interleaved: earlier builds in a process would hide the cost.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from acs_cl.benchmarks.suite.measures.startup import PLAIN_BEGIN, caches
from acs_cl.benchmarks.suite.processes import fresh_python
from acs_cl.benchmarks.suite.settings import Settings
from acs_cl.benchmarks.suite.statistics import ratios, spread
from acs_cl.benchmarks.suite.timing import rounds_in_time

LEAST = {False: 2, True: 1}  # by "is quick"
"""Rounds, however long they take."""

FIRSTS, FIRSTS_S = {False: 7, True: 1}, 12.0
"""Most rounds for first results, and their seconds."""

MANY = {False: 100, True: 20}
"""Kernels."""

_SOURCE = """
import sys
from time import perf_counter
begin = perf_counter()
MANY = int(sys.argv[2])
SOURCE = chr(10).join(
    f"kernel void k{i}(global float *x, float a) {{ x[get_global_id(0)] += a + {i}.0f; }}"
    for i in range(MANY)
)
"""

_PLAIN = """
x = cl.Buffer(context, cl.mem_flags.READ_WRITE, 256)
host = np.zeros(64, np.float32)
cl.enqueue_copy(queue, x, host)
for i in range(MANY):
    kernel = getattr(program, f"k{i}")
    kernel.set_scalar_arg_dtypes([None, np.float32])
    kernel(queue, (64,), None, x, 1)
cl.enqueue_copy(queue, host, x)
result = host
"""

_OURS = """
import numpy as np
import acs_cl as acs
excluded = 0.0
rt = acs.Runtime(int(sys.argv[1]))
x = rt.zeros(64)
program = rt.build(SOURCE)
for i in range(MANY):
    getattr(program, f"k{i}")((64,), None, x, 1)
result = x.get()
"""

_END = """
took = perf_counter() - begin - excluded
assert abs(result[0] - MANY - sum(range(MANY))) < 1, result[0]
import json
print(json.dumps({"took_s": took, "excluded_s": excluded}))
"""


def first_results(settings: Settings) -> dict[str, Any]:
    """Measure seconds of both programs, and ours over the plain one."""
    took: dict[str, list[float]] = {"plain": [], "ours": []}
    programs = {"plain": _SOURCE + PLAIN_BEGIN + _PLAIN + _END, "ours": _SOURCE + _OURS + _END}
    with tempfile.TemporaryDirectory() as folder:
        # an extra turn, which fills the caches
        for turn in rounds_in_time(LEAST[settings.quick] + 1, FIRSTS[settings.quick] + 1, FIRSTS_S):
            for name in list(programs)[:: 1 if turn % 2 else -1]:
                words = caches(Path(folder, name))
                numbers = str(settings.position), str(MANY[settings.quick])
                printed, wall_s = fresh_python(["-c", programs[name], *numbers], **words)
                if turn:
                    took[name].append(wall_s - json.loads(printed)["excluded_s"])
            if turn:
                ours, plain = took["ours"][-1], took["plain"][-1]
                print(f"  first result: {ours:.3f} s, plain {plain:.3f} s", flush=True)
    return {
        "ours_s": spread(took["ours"], 4),
        "plain_s": spread(took["plain"], 4),
        "ratio": spread(ratios(took["ours"], took["plain"])),
    }
