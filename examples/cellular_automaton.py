"""The game of life on a board of tiles; the device leaves out those in which nothing lives.

A tile is computed only if it, or a tile beside it, was alive in the step before. `when=` reads that
on the device: the host launches all tiles and reads nothing back. Look at the last line that is
printed: how many tiles the device left out.
"""

import numpy as np

import acs_cl as acs

SOURCE = """
kernel void look(global const int *alive, global int *wanted, int tiles)
{
    int x = get_global_id(0), y = get_global_id(1), any = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            any |= alive[(y + dy + tiles) % tiles * tiles + (x + dx + tiles) % tiles];
    wanted[y * tiles + x] = any;
}

kernel void live(global const uchar *from, global uchar *to, int width, int left, int top,
                 global int *alive, global int *computed)
{
    int x = left + get_global_id(0), y = top + get_global_id(1), around = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            around += from[(y + dy + width) % width * width + (x + dx + width) % width];
    uchar lives = around == 3 || (around == 4 && from[y * width + x]);  /* itself included */
    to[y * width + x] = lives;
    if (lives) atomic_or(alive, 1);
    if (get_global_id(0) == 0 && get_global_id(1) == 0) atomic_inc(computed);
}
"""
TILES, TILE, STEPS = 6, 16, 24
WIDTH = TILES * TILE

start = np.zeros((WIDTH, WIDTH), np.uint8)
start[1:4, 1:4] = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]  # a glider
start[70, 70:73] = 1  # a blinker

with acs.Runtime() as rt:
    prog = rt.build(SOURCE)
    here, there = rt.array(start), rt.array(np.zeros_like(start))
    wanted, computed = rt.zeros((TILES, TILES), "i4"), rt.zeros(1, "i4")
    alive = rt.array(np.ones((TILES, TILES), "i4"))
    for _ in range(STEPS):
        prog.look((TILES, TILES), None, alive, wanted, TILES)
        alive.fill(0)
        there.fill(0)
        for y in range(TILES):
            for x in range(TILES):
                own = np.s_[y * TILE : (y + 1) * TILE, x * TILE : (x + 1) * TILE]
                args = here, there, WIDTH, x * TILE, y * TILE, alive[y, x], computed
                both = alive[y, x], computed  # atomics read what they write
                touched = {"reads": both, "writes": (there[own], *both)}
                prog.live((TILE, TILE), None, *args, **touched, when=wanted[y, x])
        here, there = there, here
    board, done = here.get(), int(computed.get()[0])

for _ in range(STEPS):
    around = sum(np.roll(start, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)) - start
    start = ((around == 3) | ((around == 2) & (start == 1))).astype(np.uint8)
assert (board == start).all()
assert done < STEPS * TILES * TILES
print(f"{int(board.sum())} cells live; the device computed {done} of {STEPS * TILES**2} tiles")
