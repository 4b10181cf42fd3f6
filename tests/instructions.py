"""Instructions of commands on an `acs.Queue` in bypass, and on a plain queue: make instructions.

Times of a few microseconds cannot be compared on a machine that others use, too. Instructions can:
Callgrind counts those of the program's own thread, with nothing but the library and the driver in
it. They are no times, but a command that takes more of them takes longer.

Each side is one process, which makes every command many times, in rounds. A call of `os.getpgid`,
which nothing else here makes, tells Callgrind where one count ends and the next one begins. Rounds
differ by who frees the driver's memory, its own thread or the program's, and by samples of the
queue. These come by the clock, and so too often here: the least of all rounds counts.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from acs_cl import devices
from acs_cl.benchmarks.figures import instruction_tables
from acs_cl.benchmarks.suite import documents
from acs_cl.benchmarks.suite.provenance import sources

TIMES, ROUNDS = 400, 5
SIDES = ("plain", "acs")
TOTAL = re.compile(r"^totals: (\d+)$", re.MULTILINE)


def commands(side: str) -> dict[str, Callable[[], object]]:
    """Each command by name, all on one queue."""
    import numpy as np
    import pyopencl as cl
    import pyopencl.array as cl_array

    import acs_cl as acs

    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context) if side == "plain" else acs.Queue(context)
    a, b = (cl_array.zeros(queue, 64, np.float32) for _ in range(2))
    source = "kernel void add(global float *x, global float *y, float a) { x[0] += a * y[0]; }"
    kernel = cl.Program(context, source).build().add
    kernel.set_scalar_arg_dtypes([None, None, np.float32])
    x, y = (cl.Buffer(context, cl.mem_flags.READ_WRITE, 256) for _ in range(2))
    host, chain = np.zeros(1, np.float32), [a + 1]
    kernel(queue, (64,), None, x, y, 1.0)
    return {
        "`a += b` of arrays": lambda: a.__iadd__(b),
        "`c = c * b + 1` of arrays": lambda: chain.append(chain.pop() * b + 1),
        "`kernel(queue, …)`": lambda: kernel(queue, (64,), None, x, y, 1.0),
        "`enqueue_nd_range_kernel`": lambda: cl.enqueue_nd_range_kernel(queue, kernel, (64,), None),
        "kernel and read of 4 bytes": lambda: (
            kernel(queue, (64,), None, x, y, 1.0), cl.enqueue_copy(queue, host, x)
        ),
        "write of 4 bytes": lambda: cl.enqueue_copy(queue, x, host),
        "copy of 256 bytes": lambda: cl.enqueue_copy(queue, x, y),
    }  # fmt: skip


def work(side: str) -> None:
    """Make every command, in rounds, and say where each count begins and ends."""
    named = commands(side)
    print(json.dumps([*named]))
    every = named.values()
    for command in every:
        for _ in range(TIMES):  # until the queue bypasses the runtime
            command()
    for _ in range(ROUNDS):
        for command in every:
            for _ in range(TIMES // 10):
                command()
            os.getpgid(0)
            for _ in range(TIMES):
                command()
            os.getpgid(0)


def counted(side: str) -> dict[str, list[float]]:
    """Return the instructions of each command, in all rounds, the least first."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "count")
        environment = {**os.environ, "PYTHONHASHSEED": "0", "POCL_MAX_PTHREAD_COUNT": "1"}
        command = [sys.executable, __file__, "--worker", side]
        # what is compiled here is kept for the count
        said = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE).stdout
        subprocess.run(
            ["valgrind", "--tool=callgrind", "--quiet", "--separate-threads=yes",
             "--dump-before=getpgid", f"--callgrind-out-file={out}", *command],
            check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        dumps = sorted(out.parent.glob("count.*-01"), key=lambda path: int(path.name[6:-3]))
        totals = [int(TOTAL.findall(path.read_text())[0]) / TIMES for path in dumps][1::2]
    names = json.loads(said)
    return {name: sorted(totals[place :: len(names)]) for place, name in enumerate(names)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="a JSON file for the counts")
    parser.add_argument("--worker", choices=SIDES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(args.worker)
        return
    if not shutil.which("valgrind"):
        parser.error("valgrind is not installed")
    where = sources().plain()
    plain, ours = map(counted, SIDES)
    rows = {name: {"plain": plain[name], "acs": ours[name]} for name in plain}
    document = {
        "device": devices.full_name(devices.choose()), "date": str(datetime.date.today()),
        **where, "times": TIMES, "instructions": rows,
    }  # fmt: skip
    print(instruction_tables.text(document))
    if args.out:
        documents.write(args.out, document)


if __name__ == "__main__":
    main()
