"""A program on two devices: no line of it says where anything runs.

Four vectors are scaled, summed in pairs and combined. With two devices the pairs may run apart, and
only the bytes that a launch lacks are copied. Where a machine has one device, two contexts of it
stand for two. Look at what is printed: launches go where waiting and copies cost least, so short
ones may all stay on one device. `placement="round_robin"` would deal them out.
"""

import numpy as np

import acs_cl as acs
from acs_cl import devices

SOURCE = """
kernel void scale(global const float *x, global float *y, float a)
{ int i = get_global_id(0); y[i] = a * x[i]; }

kernel void sum(global const float *x, global const float *y, global float *z)
{ int i = get_global_id(0); z[i] = x[i] + y[i]; }
"""

SIZE = 1 << 16

first = devices.choose()
others = [one for one in first.platform.get_devices() if one != first]
with acs.Runtime(devices=[first, others[0] if others else first]) as rt:
    prog = rt.build(SOURCE)
    values = [np.full(SIZE, k, "f4") for k in range(4)]
    inputs = [rt.array(one) for one in values]
    scaled = [rt.empty(SIZE) for _ in range(4)]
    pairs = [rt.empty(SIZE) for _ in range(2)]
    result = rt.empty(SIZE)
    for _ in range(10):
        for x, y in zip(inputs, scaled, strict=True):
            prog.scale((SIZE,), None, x, y, 2)
        for k, z in enumerate(pairs):
            prog.sum((SIZE,), None, scaled[2 * k], scaled[2 * k + 1], z)
        last = prog.sum((SIZE,), None, *pairs, result)
    total, why, did = result.get(), rt.explain(last), rt.stats()["devices"]

assert np.array_equal(total, 2 * sum(values))
print(why)
for number, one in enumerate(did):
    moved = sum(link["bytes"] for link in one["from"].values())
    print(f"device {number}: {one['launches']} launches, {moved:,} bytes copied to it")
