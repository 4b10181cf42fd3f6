"""Sum the leaves of a random tree, a launch for each inner node: the graph follows from the input.

A node waits for its own children and for nothing else. Nobody builds a graph: the loop launches
nodes from the bottom up, and each launch names the elements that it reads and writes. Look at what
`explain` prints of the last launch: the very bytes.
"""

import numpy as np

import acs_cl as acs

SOURCE = """
kernel void add(global const long *child, global long *parent) { *parent += *child; }
"""
NODES = 300

random = np.random.default_rng(1)
parents = [0, *(int(random.integers(0, node)) for node in range(1, NODES))]
leaves = set(range(NODES)) - set(parents[1:])
values = np.array([node if node in leaves else 0 for node in range(NODES)], "i8")

with acs.Runtime() as rt:
    prog = rt.build(SOURCE)
    sums = rt.array(values)
    nodes = [sums[node : node + 1] for node in range(NODES)]
    for node in range(NODES - 1, 0, -1):  # a child has a higher number than its parent
        handle = prog.add((1,), None, nodes[node], nodes[parents[node]])
    total = int(sums.get()[0])
    why = rt.explain(handle)

assert total == sum(leaves)
print(f"the {len(leaves)} leaves sum up to {total}")
print(why)
