"""Epochs with one word changed on their way to the device: an error or a right result, never a hang
and never a crash, and the runtime goes on.

Each kind of word is tried in a process of its own, which says what it is about to do.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest
from corruptions import KINDS, SURE
from inside import Scheduler

import acs_cl as acs
from acs_cl.scheduler import layout
from acs_cl.scheduler.segment import Segment
from acs_cl.testing.scheduler import open_epochs

HERE = Path(__file__).resolve().parent
EACH = max(8, int(os.environ.get("ACS_CL_FUZZ", "300")) // 25)
"""Epochs for each kind of word."""


@pytest.mark.parametrize("part", range(2))
def test_a_corrupted_word_is_an_error_or_does_no_harm(device: cl.Device, part: int) -> None:
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(HERE / "corruptions.py"), str(EACH), *KINDS[part::2]],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300 + 10 * EACH,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, "\n".join(lines[-3:]) + done.stderr[-3000:]
    assert lines[-1] == "done"
    came: dict[str, dict[str, int]] = {kind: {} for kind in KINDS[part::2]}
    for before, line in pairwise(lines):
        if line.startswith("-> "):
            kind = before.split()[0]
            result = line.split()[1]
            assert result in ("error", "right", "wrong"), f"{before}\n{line}"
            came[kind][result] = came[kind].get(result, 0) + 1
            assert result != "wrong" or kind not in SURE, f"{before}\n{line}"
    print(came)
    assert all(sum(results.values()) == EACH for results in came.values())
    for kind in {"header", "n_successors", "edges", "args", "tiles"} & came.keys():
        assert came[kind].get("error", 0) > EACH // 2, came[kind]
    for kind in {"items", "tile_items", "size"} & came.keys():
        assert came[kind].get("error", 0) > 0, came[kind]


def test_a_segment_with_a_count_that_it_never_had_fails_and_is_made_anew(device: cl.Device) -> None:
    """A kernel that writes out of its arrays may change any word of a segment on the device."""
    with acs.Runtime(device, backend="device") as rt:
        inc = rt.build("kernel void inc(global uint *x) { x[get_global_id(0)] += 1; }").inc
        rt.prebuild(inc)
        x = rt.zeros(8, "u4")
        with rt.record() as graph:
            inc((8,), None, x)
            inc((8,), None, x)
        graph.replay().wait()
        (segment,) = graph.pieces
        assert isinstance(segment, Segment)
        region, queue = segment.resident.region, cl.CommandQueue(rt.context)
        words = np.empty(region.size // 4, np.uint32)
        cl.enqueue_copy(queue, words, region)
        record = words[int(words[layout.RECORDS_AT]) :]  # of the first launch
        record[layout.BODY] &= ~np.uint32(layout.PLAIN)
        record[layout.COUNT : layout.COUNT + 2] = record[layout.INLINE_WORD :][:2]
        record[layout.UPTO] = 0  # and x has ones
        cl.enqueue_copy(queue, region, words)
        with pytest.raises(acs.PoisonedError, match="fault 6 of task 0, which has no count"):
            graph.replay().wait()
        x.fill(0)
        graph.replay()
        assert (x.get() == 2).all()


def test_what_lanes_ran_behind_an_epoch_that_failed_is_lost(device: cl.Device) -> None:
    """Directly behind it or not, and however soon they have ended."""

    def break_it(image: layout.Image) -> None:
        image.words[layout.HEADER_CHECK] ^= 1

    with open_epochs(), acs.Runtime(device, backend="device") as rt:
        inc = rt.build("kernel void inc(global uint *x) { x[get_global_id(0)] += 1; }").inc
        rt.prebuild(inc)
        x, y, z = rt.zeros(8, "u4"), rt.zeros(8, "u4"), rt.zeros(8, "u4")
        for turn in range(20):
            Scheduler(rt).change_words(break_it)
            inc((8,), None, x)
            rt.flush()
            Scheduler(rt).change_words(None)
            time.sleep(turn % 4 * 0.001)
            y.copy_from(x)
            z.copy_from(y)
            with pytest.raises(acs.PoisonedError, match="the scheduler left"):
                z.get()
            for array in (x, y, z):
                array.fill(0)
            assert not z.get().any()
            with contextlib.suppress(acs.PoisonedError):
                rt.finish()
