"""Run a PyOpenCL program on `acs.Queue`: one line is another one, the rest is as it was.

Four independent iterations run on arrays of their own. On a queue in order each command waits for
the one before; here commands wait only for those that they follow. Look at the line with `was:`,
which is the only one that differs, and at the edges: each is within one of the four.
"""

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

import acs_cl as acs

SOURCE = """
kernel void logistic(global float *x, float rate)
{ int i = get_global_id(0); for (int k = 0; k < 20000; k++) x[i] = rate * x[i] * (1 - x[i]); }
"""

context = cl.create_some_context(interactive=False)
queue = acs.Queue(context)  # was: cl.CommandQueue(context)

program = cl.Program(context, SOURCE).build()
logistic = program.logistic
start = np.linspace(0.1, 0.9, 64, dtype="f4")
rates = [2.0, 2.5, 3.0, 3.2]
arrays = [cl_array.to_device(queue, start) for _ in rates]
for _ in range(4):
    for array, rate in zip(arrays, rates, strict=True):
        logistic(queue, array.shape, None, array.data, np.float32(rate))
means = [float((array * 2).get().mean()) / 2 for array in arrays]

assert abs(means[0] - 0.5) < 1e-3  # where the iteration with rate 2 ends
stats = queue.runtime.stats()
print("means:", [round(mean, 3) for mean in means])
print(f"{stats['launches']} launches, edges: {stats['edges']}")
