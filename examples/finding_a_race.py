"""Find a declaration that says too little, on a CPU and each time, before it is a race on a GPU.

`gather` reads wherever `index` says, which no signature shows. The program declares a part of what
it reads, and the check says which byte it forgot. Look at what is printed: launch, line, argument
and element.
"""

import numpy as np

import acs_cl as acs

SOURCE = """
kernel void gather(global const float *from, global const int *index, global float *to)
{ int i = get_global_id(0); to[i] = from[index[i]]; }
"""
N = 64


def gather_with(reads_all: bool) -> str:
    """Run the program under checks; the fault that was found, or nothing."""
    with acs.Runtime(check="access,order") as rt:
        prog = rt.build(SOURCE)
        values = rt.array(np.arange(N), "f4")
        index = rt.array((np.arange(N) * 7) % N, "i4")
        result = rt.zeros(N)
        part = values if reads_all else values[: N // 2]  # half of it is too little
        try:
            prog.gather((N,), None, values, index, result, reads=[part, index], writes=result)
            rt.finish()
        except acs.UsageError as error:
            return str(error)
    return ""


fault = gather_with(reads_all=False)
assert "gather" in fault
assert gather_with(reads_all=True) == ""
print("found:", fault)
