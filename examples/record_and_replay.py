"""Record a step that repeats, and replay it with other numbers and other arrays.

Recording costs what launching the step once costs. A replay costs the host much less, on backend
`device` one command for the whole step. Look at `update` and `swap`: the recorded step goes on with
other numbers and arrays.
"""

import numpy as np

import acs_cl as acs

SOURCE = """
kernel void push(global float *speed, global const float *place, float dt)
{ int i = get_global_id(0); speed[i] -= place[i] * dt; }

kernel void move(global float *place, global const float *speed, float dt)
{ int i = get_global_id(0); place[i] += speed[i] * dt; }
"""
N, STEPS = 256, 100

with acs.Runtime() as rt:
    prog = rt.build(SOURCE)
    start = np.linspace(0, 1, N, dtype="f4")
    place, speed = rt.array(start), rt.zeros(N)
    with rt.record() as graph:  # captures, runs nothing
        pushed = prog.push((N,), None, speed, place, 0.01)
        moved = prog.move((N,), None, place, speed, 0.01)
    for _ in range(STEPS):
        graph.replay()
    slow = place.get()

    graph.update(pushed, dt=0.02)  # numbers change from the next replay on
    graph.update(moved, dt=0.02)
    other = rt.array(start)
    graph.swap(place, other)  # and so may arrays
    speed.fill(0)
    for _ in range(STEPS):
        graph.replay()
    fast = other.get()

assert np.allclose(slow, start * np.cos(1), atol=0.02)
assert np.allclose(fast, start * np.cos(2), atol=0.02)
print(f"{2 * STEPS} replays of {2} launches; an oscillator at time 1 and at time 2")
