"""Runs of the emulator under every policy: what holds for all, and where two must be the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from emu_runs import PAPER, POLICIES, SMALL, check, random_trace, times

from acs_cl.emu.batches import Batches
from acs_cl.emu.generate import GRAPHS, Sizes, generate
from acs_cl.emu.machines import ACS_CL_POCL
from acs_cl.emu.model import Model
from acs_cl.emu.policies import ALL, bounds, model, simulate
from acs_cl.emu.spec import Machine, WindowSpec, free
from acs_cl.emu.trace import ALL_BEFORE, Entry, Trace
from acs_cl.emu.window_unit import WindowUnit
from acs_cl.emu.windows import AcsHw
from acs_cl.errors import AcsError, InternalError, UsageError

FREE = free(SMALL)
FAR = SMALL._replace(name="far", host=ACS_CL_POCL._replace(queue_depth=3))
MACHINES = (SMALL, FREE, FAR)
SEEDS = range(12)


# ---- what holds for every run --------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("where", MACHINES, ids=lambda where: where.name)
def test_every_group_runs_once_within_limits_and_bounds(policy: str, where: Machine) -> None:
    for seed in SEEDS:
        trace = random_trace(seed)
        run = model(policy, trace, where, log=True)
        outcome = run.run()
        check(run)
        least = bounds(trace, where)
        assert outcome.makespan_ns >= max(least.values()), (policy, seed, least)
        assert 0 < outcome.occupancy <= outcome.achieved_occupancy <= 1
        assert outcome.occupancy <= outcome.units_busy <= 1
        assert outcome.most_in_flight <= where.gpu.kernels


def run_until_last_launch(run: Model) -> int:
    """Run all of it; when the program made its last launch."""
    made = [0]
    launched = run.program._launched

    def watch(entry: Entry) -> None:
        made[0] = run.engine.now
        launched(entry)

    run.program._launched = watch
    run.run()
    return made[0]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_program_accounts_for_its_time(policy: str) -> None:
    """Until its last launch: nothing is booked twice, nothing left out."""
    elsewhere = {"sync", "update", "insert (window)", "update (window)"}
    if policy.startswith("acs_sw"):
        elsewhere |= {"launch", "check", "lock"}  # other threads do it
    for seed in SEEDS:
        run = model(policy, random_trace(seed), SMALL)
        made_ns = run_until_last_launch(run)
        spent = sum(ns for name, ns in run.ledger.items() if name not in elsewhere)
        handed_over = 0
        if isinstance(run, Batches):  # handing over while it waits, or at its end, is not extra
            handed_over = run.ledger[run.batch_name]
        assert made_ns <= spent <= made_ns + handed_over, (policy, seed)


def test_ten_runs_are_the_same_bytes() -> None:
    """In fresh interpreters, so that no order of hashes is the same by chance."""
    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1])\n"
        "from emu_runs import POLICIES, SMALL, random_trace\n"
        "from acs_cl.emu.policies import simulate\n"
        "print(json.dumps([simulate(p, random_trace(s), SMALL) for p in POLICIES for s in (1, 2)]))"
    )
    here = str(Path(__file__).parent)
    said = {
        subprocess.run(
            [sys.executable, "-c", code, here],
            capture_output=True,
            check=True,
            timeout=300,
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(10)
    }
    assert len(said) == 1
    assert len(json.loads(said.pop())) == 2 * len(POLICIES)


def test_waits_hold_the_program_until_the_launch_has_ended() -> None:
    """A read-back: 3 us for the launch, 10 us of kernel, 7 us until the program knows."""
    first = Entry(1, "first", groups=1, items=32, group_ns=10_000)
    second = Entry(2, "second", waits=(1,), groups=1, items=32, group_ns=5_000, host_ns=400)
    trace = Trace("wait", [first, second])
    run = model("serial", trace, PAPER, log=True)
    outcome = run.run()
    assert times(run) == {1: (3_000, 13_000), 2: (23_400, 28_400)}
    assert outcome.makespan_ns == 35_400
    assert outcome.overheads_ns == {"launch": 6_000, "program": 400, "waiting": 17_000}
    assert bounds(trace, PAPER) == {"critical path": 15_400, "work": 21}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_wait_for_all_is_a_wait_for_each(policy: str) -> None:
    """In the middle, and again later, with some that nobody follows."""
    for seed in SEEDS:
        made = random_trace(seed)
        entries = [one._replace(waits=()) for one in made.entries]
        some, each = list(entries), list(entries)
        for place in (len(entries) // 3, len(entries) // 2):
            some[place] = entries[place]._replace(waits=(ALL_BEFORE,))
            each[place] = entries[place]._replace(waits=tuple(range(1, place + 1)))
        runs = [simulate(policy, made._replace(entries=one), SMALL) for one in (some, each)]
        assert runs[0] == runs[1]
        assert bounds(made._replace(entries=some), SMALL) == bounds(
            made._replace(entries=each), SMALL
        )


# ---- where two policies are the same -------------------------------------------------------------


@pytest.mark.parametrize("policy", ["acs_sw(N=1, threads=1)", "acs_hw(N=1, M=1)", "streams(S=1)"])
def test_one_slot_is_one_stream(policy: str) -> None:
    for seed in SEEDS:
        trace = random_trace(seed)
        runs = [model(name, trace, FREE, log=True) for name in (policy, "serial")]
        ends = [run.run().makespan_ns for run in runs]
        assert times(runs[0]) == times(runs[1])
        assert ends[0] == ends[1]


@pytest.mark.parametrize(
    "policy", ["acs_sw(N=99, threads=99)", "acs_hw(N=99, M=99)", "streams(S=99)", "cuda_replay"]
)
def test_a_window_beyond_the_trace_is_the_full_graph(policy: str) -> None:
    for seed in SEEDS:
        trace = random_trace(seed)
        if policy == "cuda_replay":  # whose graphs are launched when the program has made them
            entries = [entry._replace(waits=(), host_ns=0) for entry in trace.entries]
            trace = trace._replace(entries=entries)
        runs = [model(name, trace, FREE, log=True) for name in (policy, "ideal")]
        ends = [run.run().makespan_ns for run in runs]
        assert times(runs[0]) == times(runs[1])
        assert ends[0] == ends[1]


# ---- staleness -----------------------------------------------------------------------------------


class Forgetful(WindowUnit):
    """Without the check that nothing unfinished is too far back."""

    def sees_all(self, number: int) -> bool:
        return True


class Broken(AcsHw):
    """ACS-HW with that unit."""

    def make_unit(self, spec: WindowSpec) -> WindowUnit:
        return Forgetful(spec)


def stale_trace(seed: int) -> Trace:
    """One long launch at times, and those behind it up to twelve later."""
    entries = []
    for entry in random_trace(seed, 80).entries:
        back = {max(1, entry.number - 3 - (seed + entry.number * 7) % 10)} - {entry.number}
        upstream = tuple(sorted(back))
        entries.append(entry._replace(upstream=upstream, waits=()))
    return Trace(f"stale {seed}", entries)


def test_no_launch_misses_an_upstream_that_still_runs() -> None:
    """And without the check some do: the run that would compute wrong results is refused."""
    caught = 0
    for seed in range(40):
        trace = stale_trace(seed)
        for where in (SMALL, FREE):
            sound = AcsHw(trace, where, 12, 4, log=True)
            sound.run()
            check(sound)
            try:
                Broken(trace, where, 12, 4).run()
            except InternalError:  # "began launch 9 beside 3"
                caught += 1
    assert caught > 20


@pytest.mark.parametrize("bits", [3, 4, 8])
def test_ids_that_wrap_change_nothing(bits: int) -> None:
    for seed in SEEDS:
        trace = stale_trace(seed)
        narrow, wide = (AcsHw(trace, SMALL, 8, 7, id_bits=width, log=True) for width in (bits, 40))
        assert narrow.run()._replace(policy="") == wide.run()._replace(policy="")
        assert times(narrow) == times(wide)


def test_ids_too_narrow_are_refused() -> None:
    with pytest.raises(UsageError, match="ids of 3 bits name 8 launches; M = 8 needs 4 bits"):
        AcsHw(random_trace(1), SMALL, 4, 8, id_bits=3)


# ---- golden --------------------------------------------------------------------------------------

GOLDEN = {
    "trivial": [
        1_163_592,
        307_647,
        444_874,
        228_874,
        308_264,
        344_114,
        754_548,
        218_364,
    ],
    "chains": [
        1_118_773,
        323_784,
        507_220,
        291_220,
        363_744,
        355_932,
        1_005_777,
        287_105,
    ],
    "layers": [
        501_504,
        208_680,
        289_979,
        193_229,
        298_746,
        194_359,
        674_478,
        174_949,
    ],
    "stencil": [
        1_139_987,
        363_467,
        544_504,
        328_504,
        416_274,
        349_442,
        1_060_197,
        312_157,
    ],
    "fft": [
        1_073_163,
        341_146,
        490_272,
        274_272,
        370_245,
        348_571,
        895_625,
        258_307,
    ],
    "sweep": [
        1_147_347,
        318_899,
        447_364,
        231_364,
        325_031,
        353_834,
        840_526,
        218_232,
    ],
    "tree": [
        494_249,
        202_967,
        270_851,
        176_351,
        277_238,
        193_461,
        655_002,
        158_216,
    ],
    "random": [
        1_195_124,
        356_565,
        508_060,
        292_060,
        380_441,
        348_300,
        957_025,
        274_348,
    ],
}
"""Nanoseconds on the preset `paper`, by graph and in the order of `ALL`. They change only with the
model, and then in view."""


@pytest.mark.parametrize("graph", GRAPHS)
def test_makespans_are_what_they_were(graph: str) -> None:
    sizes = Sizes(groups=(1, 300), registers=64)
    trace = generate(graph, 8, 12, seed=9, sizes=sizes)
    assert [simulate(policy, trace, PAPER).makespan_ns for policy in ALL] == GOLDEN[graph]


# ---- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("acs_xw", "no policy is called"),
        ("acs_hw(N=0)", "numbers from 1 to 1,048,576; got 'N=0'"),
        ("acs_hw(Q=3)", "takes N, M, bits"),
        ("serial(N=3)", "takes nothing"),
        ("acs_sw(N=3", "no policy"),
    ],
)
def test_a_policy_that_is_none_is_said_to_be_none(text: str, said: str) -> None:
    with pytest.raises(AcsError, match=said.replace("(", r"\(")):
        model(text, random_trace(1), SMALL)


def test_numbers_of_a_policy_are_taken() -> None:
    assert model(" acs_hw( N = 4, M=9 ) ", random_trace(1), SMALL).name == "acs_hw(N=4, M=9)"
    assert model("acs_sw", random_trace(1), SMALL).name == "acs_sw(N=32, threads=8)"
