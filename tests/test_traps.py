"""Hostile kernels: what they really touch is among what a launch says, and every form agrees.

`make traps` tries all of them in every form, each in a program of its own, and flips every byte by
itself. Here some of those that can share programs are measured, some of the others, and each form
on some. Half of these are always the same ones; the others change with the commit (`sampling.py`).
`ACS_CL_EVERY=1` measures all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
import pyopencl as cl
import pytest
from sampling import EVERY, SAMPLE
from traps import all_traps
from traps.__main__ import is_wrong
from traps.bench import bundles
from traps.case import Trap
from traps.measuring import Memory, Unsteady, measure
from traps.processes import Job, Result, run
from traps.trying import FORMS, said

from acs_cl import devices
from acs_cl.records import EVERYTHING, Span

TOGETHER = 20
GROUP_EVERY = 8
ALONE_EVERY = 96
FORM_EVERY = 6
DEVICE_EVERY = 48
STEP = 16
PARTS = 12  # a test each, so that none takes long on a slow machine


def short_jobs() -> list[Job]:
    """The jobs of the short form."""
    traps = all_traps()
    shared = bundles([trap for trap in traps if trap.shares], TOGETHER)
    alone = [[trap] for trap in traps if not trap.shares]
    groups = [*taken(list(shared), GROUP_EVERY), *taken(alone, ALONE_EVERY)]
    jobs, place = [], 0
    for group in groups:
        forms = {}
        for trap in group:
            forms[trap.name] = _forms(place, len(group))
            place += 1
        jobs.append(Job(tuple(forms), forms, STEP, TOGETHER))
    return jobs


def taken(groups: list[list[Trap]], every: int) -> list[list[Trap]]:
    """One group in so many that is always taken, and one whose turn it is in this sample."""
    turn = 1 + SAMPLE % (every - 1)
    return [group for place, group in enumerate(groups) if EVERY or place % every in (0, turn)]


def _forms(place: int, together: int) -> list[str]:
    """Replays cost nothing; another form is built for some, the scheduler's for few."""
    rewritten = ("when", "size", "view", "checked")[place // FORM_EVERY % 4]
    more = [rewritten] if place % FORM_EVERY == 0 or together == 1 else []
    return ["replay", *more, *(["device"] if place % DEVICE_EVERY == 1 else [])]


LIMIT_S = 30.0
"""A driver that compiles for longer is left alone here: `make traps` has time for that."""


@functools.cache
def found_in(part: int, device: str) -> list[Result]:
    """What each trap of one part of the jobs gives, tried once in a process of tests."""
    jobs = short_jobs()[part::PARTS]
    found = run(jobs, device, 1, lambda results: None, limit_s=LIMIT_S, is_patient=False)
    assert len(found) == sum(len(job.names) for job in jobs)
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_no_trap_catches_the_inference_or_a_rewritten_form(device: cl.Device, part: int) -> None:
    wrong = [one for one in found_in(part, devices.full_name(device)) if is_wrong(one)]
    assert not wrong, (f"ACS_CL_SAMPLE={SAMPLE}", wrong)


def test_most_traps_are_tried_and_the_inference_is_of_use(device: cl.Device) -> None:
    found = [one for part in range(PARTS) for one in found_in(part, devices.full_name(device))]
    tried = [result for result in found if "skipped" not in result]
    assert len(tried) > 200
    for form in FORMS:
        assert any(result["forms"].get(form) == "same" for result in tried), form
    exact = sum(result["ranges"] == "exact" for result in tried)
    assert exact > len(tried) // 4, "the inference has become useless"


# ---- the harness itself ----


def measured(kernel: Callable[[Memory], None], *sizes: int) -> tuple[list[set[int]], ...]:
    """What is found of a kernel that is a Python function on arrays of bytes."""

    def run_all(memories: Sequence[Memory]) -> list[Memory]:
        left = [[values.copy() for values in memory] for memory in memories]
        for one in left:
            kernel(one)
        return left

    memory = [np.arange(3, 3 + size, dtype=np.uint8) for size in sizes]
    found = measure(run_all, memory, 4)
    return found.reads, found.writes


def test_measuring_sees_each_byte_that_is_read_or_written() -> None:
    def kernel(memory: Memory) -> None:
        x, y = memory
        y[2] = x[3] ^ x[5]
        y[7] += 1
        y[9] = 200

    assert measured(kernel, 8, 12) == ([{3, 5}, {7}], [set(), {2, 7, 9}])


def test_measuring_sees_writes_of_what_is_there_and_reads_behind_a_condition() -> None:
    def kernel(memory: Memory) -> None:
        y = memory[0]
        y[1] = 4  # which it is
        if y[2] > 200:
            y[6] = 1

    assert measured(kernel, 8) == ([{2}], [{1, 6}])


def test_measuring_refuses_what_differs_by_itself() -> None:
    state = iter(range(100))

    def kernel(memory: Memory) -> None:
        memory[0][0] = next(state)

    with pytest.raises(Unsteady):
        measured(kernel, 4)


def test_bytes_of_spans_are_those_of_the_array() -> None:
    class Array:
        span = Span(3, 100, 32, 1, 32)

    rows = (Span(3, 104, 8, 3, 2), Span(4, 100, 4, 1, 4))
    assert said(rows, Array(), 32) == {4, 5, 12, 13, 20, 21}
    assert said((Span(EVERYTHING, 0, 1, 1, 1),), Array(), 4) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("result", "wrong"),
    [
        ({"ranges": "exact", "forms": {"when": "same"}}, False),
        ({"ranges": "everything", "forms": {"when": "refused: no"}}, False),
        ({"skipped": "does not build"}, False),
        ({"ranges": "missed writes of 0: bytes 4..8", "forms": {}}, True),
        ({"ranges": "exact", "forms": {"view": "different: buffer 0"}}, True),
        ({"ranges": "unknown", "forms": {"device": "crashed: device a"}}, True),
    ],
)
def test_what_is_wrong(result: Result, wrong: bool) -> None:
    assert is_wrong(result) == wrong


def test_traps_share_a_program_only_where_their_names_are_their_own() -> None:
    own = "kernel void k$() { }"
    traps = [Trap("a", own, ()), Trap("b", "kernel void k() { }", ()),
             Trap("c", own, (), ("-DX",)), Trap("d", own, ())]  # fmt: skip
    names = ["".join(trap.name for trap in group) for group in bundles(traps, 8)]
    assert sorted(names) == ["ad", "b", "c"]
