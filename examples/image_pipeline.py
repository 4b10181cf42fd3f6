"""A pipeline of images: pictures do not wait for each other, steps of one picture do.

Each picture is blurred, its edges are found, and its brightest edge is read back. What is read
first is waited for alone: the other pictures are still under way. Look at `raw`, which serves
twice: a launch that writes it waits for the one that reads it.
"""

import numpy as np

import acs_cl as acs

SOURCE = """
kernel void blur(global const float *from, global float *to, int width, int height)
{
    int x = get_global_id(0), y = get_global_id(1);
    float sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            sum += from[clamp(y + dy, 0, height - 1) * width + clamp(x + dx, 0, width - 1)];
    to[y * width + x] = sum / 9;
}

kernel void edges(global const float *from, global float *to, int width, int height)
{
    int x = get_global_id(0), y = get_global_id(1), at = y * width + x;
    float right = from[y * width + min(x + 1, width - 1)];
    float below = from[min(y + 1, height - 1) * width + x];
    to[at] = fabs(right - from[at]) + fabs(below - from[at]);
}

kernel void brightest(global const float *from, global float *most, int width, int height)
{
    float found = 0;
    for (int i = 0; i < width * height; ++i) found = fmax(found, from[i]);
    most[0] = found;
}
"""
PICTURES, SIZE = 6, (96, 64)

with acs.Runtime() as rt:
    prog = rt.build(SOURCE)
    random = np.random.default_rng(3)
    pictures = [random.random((SIZE[1], SIZE[0]), dtype="f4") for _ in range(PICTURES)]
    most = rt.zeros(PICTURES)
    for number, picture in enumerate(pictures):
        raw, soft = rt.array(picture), rt.empty(picture.shape)
        prog.blur(SIZE, None, raw, soft, *SIZE)
        prog.edges(SIZE, None, soft, raw, *SIZE)  # `raw` serves again: it waits for the blur
        prog.brightest((1,), None, raw, most[number : number + 1], *SIZE)
    first = float(most[:1].get()[0])  # waits for the first picture only
    found = most.get()
    stats = rt.stats()


def as_numpy(picture: np.ndarray) -> float:
    """The same for one picture."""
    padded = np.pad(picture, 1, mode="edge")
    height, width = picture.shape
    parts = [padded[y : y + height, x : x + width] for y in range(3) for x in range(3)]
    soft = np.pad(sum(parts) / 9, ((0, 1), (0, 1)), mode="edge")
    here = soft[:-1, :-1]
    return float((abs(soft[:-1, 1:] - here) + abs(soft[1:, :-1] - here)).max())


assert first == found[0]
assert np.allclose(found, [as_numpy(picture) for picture in pictures], atol=1e-5)
print(f"{PICTURES} pictures, edges up to {found.max():.3f}; {stats['launches']} launches")
