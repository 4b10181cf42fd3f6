"""The pictures of the guide, taken of a page that a small program makes: `make pictures`.

In: Chromium, and the default device. Out: PNG files in docs/guide/pictures, in few colours, so that
they are small.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from browser import Page, chromium
from PIL import Image

import acs_cl as acs
from acs_cl.observe.record import Record
from acs_cl.observe.report.page import write

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "guide" / "pictures"
COLOURS = 256
SOURCE = """
kernel void blur(global const uint *order, global uint *image, uint rounds)
{
    uint v = get_global_id(0) + 1;
    for (uint i = 0; i < rounds; ++i) { v ^= v << 13; v ^= v >> 17; v ^= v << 5; }
    image[order[get_global_id(0)]] = v;
}
kernel void reduce(global const uint *image, global uint *sum, uint items)
{
    uint v = 0;
    for (uint i = 0; i < 9000 * items; ++i) v = v * 3 + image[i % items];
    sum[0] = v;
}
"""
ITEMS, BANDS, STEPS, ROUNDS = 64, 6, 3, 40_000


def program() -> Record:
    """Blur bands of an image, whose views overlap a little; sum each of them; look at one sum."""
    with acs.Runtime(backend="lanes", lanes=4) as rt:
        prog = rt.build(SOURCE)
        order = rt.array(np.arange(ITEMS, dtype=np.uint32))
        image, sums = rt.zeros(BANDS * ITEMS + 8, np.uint32), rt.zeros(BANDS, np.uint32)
        for _ in range(2):  # the first time the driver builds
            with rt.measure() as m:
                for _ in range(STEPS):
                    for band in range(BANDS):
                        view = image[band * ITEMS : (band + 1) * ITEMS + 8]
                        prog.blur((ITEMS,), (ITEMS,), order, view, ROUNDS)
                    for band in range(BANDS):
                        view = image[band * ITEMS : (band + 1) * ITEMS]
                        prog.reduce((1,), (1,), view, sums[band : band + 1], ITEMS)
                    sums[0:1].get()
    return m.record("bands.py")


def taken(page: Page, selectors: tuple[str, ...], out: Path) -> None:
    """Put pictures of parts of the page below one another."""
    with tempfile.TemporaryDirectory() as folder:
        parts = []
        for count, selector in enumerate(selectors):
            part = Path(folder, f"{count}.png")
            page.picture(part, selector)
            parts.append(Image.open(part).convert("RGB"))
        width, height = max(one.width for one in parts), sum(one.height + 10 for one in parts)
        whole = Image.new("RGB", (width, height - 10), parts[0].getpixel((2, 2)))
        at = 0
        for one in parts:
            whole.paste(one, (0, at))
            at += one.height + 10
        whole.quantize(COLOURS).save(out, optimize=True)
    print(f"{out.relative_to(ROOT)}: {out.stat().st_size / 1e3:.0f} kB")


def main() -> int:
    """Take them all; the exit code."""
    if chromium() is None:
        print("pictures: there is no Chromium on the PATH", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Page() as page:
        path = Path(folder, "page.html")
        write(program(), path)
        page.open(path, width=1000)
        taken(page, ("#advice", "#time"), FOLDER / "advice.png")
        page.click_on(".finding.first button")
        page.click_on("#zoom-all")
        taken(page, ("#timeline", "#why"), FOLDER / "why.png")
        page.open(path, dark=True, width=1000)
        taken(page, ("#graph",), FOLDER / "graph.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
