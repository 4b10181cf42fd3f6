"""What was measured of hostile kernels is among what their launches say, each time the tests run.

`make traps` runs all of them with flipped bytes, which takes long, and notes what each touches.
Here each is built and recorded, and does not run. So a change of the inference that misses a byte
of any of them is seen at once. What runs in other forms is sampled by `test_traps.py`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyopencl as cl
import pytest
from traps import all_traps
from traps.__main__ import digest
from traps.bench import Bench, bundles
from traps.trying import Try

MEASURED = Path(__file__).parent.parent / "benchmarks" / "results" / "traps-pocl.json"
pytestmark = pytest.mark.filterwarnings("ignore::acs_cl.errors.CheckWarning")  # all take bytes
TOGETHER = 20
PARTS = 12  # a test each, so that a failure is soon known


def measured() -> dict[str, list[list[set[int]]]]:
    """The bytes of each array that each trap was seen to read and to write, if it has not changed
    since."""
    found = json.loads(MEASURED.read_text("utf-8"))["results"]
    digests = {trap.name: digest(trap) for trap in all_traps()}
    return {
        one["name"]: [[bytes_in(ranges) for ranges in each] for each in one["touched"]]
        for one in found
        if "touched" in one and digests.get(one["name"]) == one["trap"]
    }


def bytes_in(ranges: Sequence[Sequence[int]]) -> set[int]:
    return {place for low, high in ranges for place in range(low, high)}


@pytest.fixture(scope="module")
def bench(device: cl.Device) -> Bench:
    if device.platform.name != "Portable Computing Language":
        pytest.skip("what traps touch was measured on PoCL")
    return Bench(device, lambda text: None)


@pytest.fixture(scope="module")
def touched() -> dict[str, list[list[set[int]]]]:
    return measured()


def test_nearly_all_traps_were_measured(touched: dict[str, Any]) -> None:
    assert len(touched) > 0.9 * len(all_traps()), "make traps"


@pytest.mark.parametrize("part", range(PARTS))
def test_a_launch_says_all_that_its_kernel_was_seen_to_touch(
    bench: Bench, touched: dict[str, list[list[set[int]]]], part: int
) -> None:
    groups = list(bundles([trap for trap in all_traps() if trap.name in touched], TOGETHER))
    verdicts: dict[str, str] = {}
    for group in groups[part::PARTS]:
        bench.natives.clear()
        with contextlib.ExitStack() as folders:
            for one in bench.built(group, folders):
                if isinstance(one, Try):
                    verdicts[one.trap.name] = one.recorded(*touched[one.trap.name])
    assert {name: said for name, said in verdicts.items() if said.startswith("missed")} == {}
    assert sum(said == "exact" for said in verdicts.values()) > len(verdicts) // 8
