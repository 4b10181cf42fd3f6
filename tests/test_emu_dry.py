"""Traces without a device: the launches and edges of real runs, and the table made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Environment

import acs_cl as acs
from acs_cl import UsageError
from acs_cl.benchmarks.figures import paper_causes, paper_tables
from acs_cl.benchmarks.peers.published import ACS
from acs_cl.benchmarks.validation import paper
from acs_cl.benchmarks.validation.dry import Dry, traced
from acs_cl.benchmarks.validation.kernel_work import Work, work
from acs_cl.benchmarks.workloads import catalogue
from acs_cl.emu.convert import from_timeline
from acs_cl.emu.cost import Costs
from acs_cl.emu.machines import machine
from acs_cl.emu.policies import simulate
from acs_cl.emu.trace import Entry, Trace, load, resolved, save
from acs_cl.tools.cli import main

THERE = catalogue()
SOURCE = """
kernel void keep(global const uint *from, global uint *to, int length)
{ int i = get_global_id(0); if (i < length) to[i] = from[i]; }
kernel void nobody_counted(global uint *to) { to[0] = 1; }
"""


def recorded(name: str, tmp_path: Path) -> Trace:
    """A step on a device, as its timeline tells."""
    workload = THERE[name]
    make = workload.host_decided or workload.make
    with acs.Runtime(backend="serial", trace=True) as rt:
        run = make(rt, workload.presets["tiny"], 0)
        run.reset()
        rt.finish()
        rt.trace.clear()
        run.step()
        rt.finish()
        rt.trace.save(tmp_path / "timeline.jsonl")
    return from_timeline(tmp_path / "timeline.jsonl", items=1)[0]


@pytest.mark.parametrize("name", paper.TWELVE)
def test_launches_and_edges_are_those_of_a_real_run(
    name: str, tmp_path: Path, environment: Environment
) -> None:
    environment(ACS_CL_RANGES="off")  # a dry run has whole views
    dry, real = resolved(traced(THERE[name], "tiny")), resolved(recorded(name, tmp_path))
    assert [(one.name, one.kind, one.groups, one.items) for one in dry.entries] == [
        (one.name, one.kind, one.groups, one.items) for one in real.entries
    ]
    assert [one.upstream for one in dry.entries] == [one.upstream for one in real.entries]
    assert [one.segments for one in dry.entries] == [one.segments for one in real.entries]


@pytest.mark.parametrize("name", ["vec", "hits", "dl", "stencil", "strided", "aliasing"])
def test_so_are_those_of_workloads_that_nobody_has_counted(
    name: str, tmp_path: Path, environment: Environment
) -> None:
    environment(ACS_CL_RANGES="off")
    dry = resolved(traced(THERE[name], "tiny", group_ns=700))
    real = resolved(recorded(name, tmp_path))
    assert [(one.name, one.kind) for one in dry.entries] == [
        (one.name, one.kind) for one in real.entries
    ]
    assert [one.upstream for one in dry.entries] == [one.upstream for one in real.entries]
    assert {one.group_ns for one in dry.entries if one.kind == "kernel"} == {700}


def test_groups_that_share_memory_are_whole() -> None:
    entries = traced(THERE["hits"], "tiny", group_ns=700).entries
    names = {(one.name, one.whole_groups) for one in entries if one.kind == "kernel"}
    assert names == {("gather", 0), ("divide_by_root", 0), ("partial_dots", 1), ("sum_of", 1)}


def test_a_program_that_reads_waits_for_the_read() -> None:
    entries = traced(THERE["ant"], "tiny").entries
    reads = [one.number for one in entries if one.kind == "read"]
    assert len(reads) == 2 * THERE["ant"].presets["tiny"].frames
    assert {one.number: one.waits for one in entries if one.waits} == {
        number + 1: (number,) for number in reads
    }


def test_equal_seeds_are_equal_traces_that_read_back(tmp_path: Path) -> None:
    first, second = (traced(THERE["routing"], "tiny", seed=3) for _ in range(2))
    assert first == second
    save(first, tmp_path / "trace.jsonl")
    assert load(tmp_path / "trace.jsonl") == first
    other = traced(THERE["routing"], "tiny", seed=4)
    assert [one.name for one in other.entries] != [one.name for one in first.entries]


def test_what_a_trace_cannot_hold_is_refused() -> None:
    dry = Dry()
    prog, x = dry.build(SOURCE), dry.zeros(64, "u4")
    with pytest.raises(UsageError, match="kernel keep: nobody decides on a device"):
        prog.keep((64,), (64,), x, x, 64, when=x[0])
    with pytest.raises(UsageError, match="kernel keep: a trace needs the size of its groups"):
        prog.keep((64,), None, x, x, 64)
    with pytest.raises(UsageError, match="kernel keep: got 2 arguments, expected 3"):
        prog.keep((64,), (64,), x, x)
    with pytest.raises(UsageError, match="nobody has counted what kernel nobody_counted does"):
        prog.nobody_counted((64,), (64,), x)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["nothing"], "no workload or family is called 'nothing'; there are the families dynamic"),
        (["chains"], "nobody has counted what the kernels of chains do"),
        (["ant", "--seed", "-1"], "--seed and --group-ns are from 0, got -1 and 0"),
        (["ant", "grasp"], "2 traces need a folder that is there"),
        (["ant", "--out", "nowhere/ant.jsonl"], "there is no such folder"),
    ],
)
def test_a_wrong_option_is_one_message(
    words: list[str], what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert main(["emu", "dry", "--preset", "tiny", "--out", str(out), *words]) == 1
    assert what in capsys.readouterr().err
    assert not out.exists()


def test_the_command_writes_what_is_traced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["emu", "dry", "rigid", "vec", "--preset", "tiny", "--group-ns", "900"]
    assert main([*words, "--seed", "2", "--out", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6
    assert load(tmp_path / "grasp.jsonl") == traced(THERE["grasp"], "tiny", 2)
    assert load(tmp_path / "vec.jsonl") == traced(THERE["vec"], "tiny", 2, 900)
    assert main(["emu", "run", "ideal", "--trace", str(tmp_path / "ant.jsonl")]) == 0


def test_spans_are_those_of_the_memory_that_would_be_there() -> None:
    dry = Dry()
    prog, x = dry.build(SOURCE), dry.zeros((4, 32))
    dry.entries.clear()
    prog.keep((64,), (32,), x[1], x[2:].reshape(64), 64)
    (entry,) = dry.entries
    assert [tuple(span) for span in entry.reads] == [(1, 128, 128, 1, 128)]
    assert [tuple(span) for span in entry.writes] == [(1, 256, 256, 1, 256)]
    assert (entry.groups, entry.items, entry.bytes, entry.rounds) == (2, 32, 192, 1)


def test_a_work_item_goes_round_where_there_are_too_few() -> None:
    """256 outputs of a sum over 100, by 64 items."""
    assert work("dense", 64, [0, 0, 0, 0, 100, 256, 0, 1]) == Work(51_200, 400, 100)
    assert work("dense", 256, [0, 0, 0, 0, 100, 256, 0, 1]) == Work(51_200, 100, 25)


def test_a_work_item_takes_the_time_of_its_chain() -> None:
    """At 4 cycles a step and 193 a round, 1.4 GHz; or that of its flops, where they are more."""
    costs = Costs(machine("paper").gpu)
    chain = Entry(1, "k", groups=1, items=64, steps=100, rounds=2)
    assert costs.alone_ns(chain) == -(-(400 + 386) * 1000 // 1400)
    assert costs.alone_ns(chain._replace(flops=256 * 1400)) == 1000


# ---- the table -----------------------------------------------------------------------------------


def committed() -> dict[str, Any]:
    found = json.loads(paper.RESULT.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", ["ant", "squeezenet", "randwire"])
def test_the_committed_figures_are_those_of_these_sources(name: str) -> None:
    trace = resolved(traced(THERE[name], "paper"))
    assert (
        json.loads(json.dumps(paper.one(name, trace, machine("paper"))))
        == (committed()["workloads"][name])
    )


def test_every_published_workload_is_there_and_every_sweep_has_its_base() -> None:
    document = committed()
    assert list(document["workloads"]) == list(paper.TWELVE)
    assert sorted(paper.TWELVE) == sorted(ACS)
    bases = {"launch": "3 us", "synchronisation": "7 us", "device slower": "1 x", "N": "32"}
    bases |= {"a node built": "2.25 us", "N = M": "32", "M": "32", "threads": "8"}
    bases |= {"kernels wider": "1 x"}
    for axis, label in bases.items():
        for name, values in document["sweeps"][axis][label].items():
            for column, value in values.items():
                assert value == paper_tables.ours(document, name, column)


def test_every_difference_has_a_cause_and_none_is_made_up() -> None:
    document = committed()
    assert "None is left without a cause." in paper_tables.render(document)
    off = [("ant", paper_tables.HW, 0.85, 99.0)]
    said = "\n".join(paper_causes.render(document, off))
    assert "Not reached by any of these: ACS-HW of ant (nearest: " in said


def test_a_cause_brings_a_figure_half_way_at_least() -> None:
    """What changes a figure by a hundredth explains nothing, though it is within 0.2 then."""
    document = committed()
    ours = paper_tables.ours(document, "ant", paper_tables.SW)
    swept = document["sweeps"]["N"]
    for label in swept:
        swept[label]["ant"][paper_tables.SW] = ours
    for value, named in ((ours + 0.02, False), (ours + 0.12, True)):
        swept["16"]["ant"][paper_tables.SW] = value
        off = [("ant", paper_tables.SW, ours, ours + 0.21)]
        said = "\n".join(paper_causes.render(document, off))
        assert (f"N 16 ({value:.2f})" in said) == named


def test_wider_kernels_have_more_groups_of_the_same_kind() -> None:
    entries = [Entry(1, "k", groups=3, items=8, group_ns=5), Entry(2, "up", "write", total_ns=4)]
    wide = paper.widened(Trace("two", entries), 4).entries
    assert wide == [entries[0]._replace(groups=12), entries[1]]


def test_launches_of_the_simulator_overlap_and_cost_the_host_nothing() -> None:
    """5,000 cycles at 1.4 GHz before each kernel: one after another in a stream, else together."""
    entries = [Entry(n, "k", groups=1, items=32, group_ns=10_000) for n in (1, 2)]
    where = paper.simulated_launches(machine("paper"))
    serial, graph = (simulate(name, Trace("two", entries), where) for name in ("serial", "ideal"))
    assert serial.makespan_ns == 2 * (3_572 + 10_000) + where.host.sync_ns
    assert graph.makespan_ns == 3_572 + 10_000
