"""Proofs of epochs: words that the library makes are accepted, and planted faults are found.

`proofs` makes both, and `make proofs` runs many.
"""

from __future__ import annotations

import json
import random
import re
import zipfile
from pathlib import Path

import numpy as np
import proofs
import pyopencl as cl
import pytest
from proofs import BODIES, GROUPS, LAUNCHES, made, shared_pairs

import acs_cl as acs
from acs_cl.errors import InternalError
from acs_cl.records import Access, Span
from acs_cl.scheduler import layout, proof
from acs_cl.scheduler.segment import Segment
from acs_cl.tools import cli

GRAPHS = 300
HEADER = Path(__file__).parent.parent / "kernels_cl" / "descriptor.h"


# ---- good graphs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(4))
def test_what_the_library_makes_is_proven(part: int) -> None:
    found = {seed: proofs.refused(seed) for seed in range(part, GRAPHS, 4)}
    assert not any(found.values()), found


def test_pairs_are_those_that_share_bytes() -> None:
    for seed in range(30):
        one = made(random.Random(f"pairs {seed}"))
        found = proof.prove(one.words, one.accesses, one.sent)
        assert found.pairs == len(shared_pairs(one.accesses)), seed


def test_constants_are_those_of_the_device() -> None:
    said = dict(
        re.findall(r"#define ACS_(\w+) (0x[0-9A-Fa-f]+|\d+)u?\b", HEADER.read_text("utf-8"))
    )
    own = {name: value for name, value in vars(proof).items() if name in said}
    assert len(own) >= 12
    assert own == {name: int(said[name], 0) for name in own}


@pytest.mark.parametrize("name", proofs.PLANTERS)
def test_planted_fault_is_found(name: str) -> None:
    assert not proofs.missed(name, *proofs.PLANTERS[name])


def test_planted_faults_are_many() -> None:
    assert len(proofs.PLANTERS) * proofs.EACH >= 200


def test_tool_tells_what_was_proven(tmp_path: Path) -> None:
    few = dict(list(proofs.PLANTERS.items())[:2])
    place = tmp_path / "proofs.json"
    assert proofs.main(["--graphs", "3", "--json", str(place)], few) == 0
    report = json.loads(place.read_text("utf-8"))
    assert (report["graphs"], report["refused"], report["planted"], report["missed"]) == (
        3, [], 2 * proofs.EACH, [],
    )  # fmt: skip
    others = {name: ("ring", plant) for name, (_, plant) in few.items()}
    assert proofs.main(["--graphs", "1", "--json", str(place)], others) == 1
    assert len(json.loads(place.read_text("utf-8"))["missed"]) == 2 * proofs.EACH


# ---- graphs of a runtime -------------------------------------------------------------------------

SOURCE = """
kernel void push(global const float *x, global float *y, float by)
{ int i = get_global_id(0); y[i] += by * x[i]; }
kernel void gather(global const float *x, global float *y, local float *own)
{ int i = get_global_id(0), l = get_local_id(0); own[l] = x[i]; barrier(CLK_LOCAL_MEM_FENCE);
  y[i] = own[get_local_size(0) - 1 - l]; }
"""
PROGRAM = f'''
import acs_cl as acs
with acs.Runtime() as rt:
    prog = rt.build("""{SOURCE}""")
    x, y = rt.zeros(64), rt.zeros(64)
    for _ in range(3):
        with rt.record() as graph:
            prog.push((64,), None, x, y, 1)
            prog.push((64,), None, y, x, 1)
        graph.replay()
print("the program's own")
'''


def recorded(rt: acs.Runtime) -> tuple[acs.Graph, list[acs.Handle], list[acs.Array]]:
    prog = rt.build(SOURCE)
    rows = [rt.array(np.arange(640), "f4") for _ in range(4)]
    with rt.record() as graph:
        handles = [
            prog.push((640,), None, rows[step % 4], rows[(step * 3 + 1) % 4], 0.5)
            for step in range(30)
        ]
        prog.gather((640,), (64,), rows[0], rows[1], cl.LocalMemory(256))
        rows[2].set(np.arange(640) % 7)
        prog.push((640,), None, rows[2], rows[3], 0.25)
    return graph, handles, rows


@pytest.mark.parametrize("order", ["first_in", "critical_path"])
@pytest.mark.parametrize("window", [None, 3])
def test_graph_is_proven_before_and_after_replays(
    device: cl.Device, order: str, window: int | None
) -> None:
    with acs.Runtime(device, backend="device", order=order, window=window) as rt:
        graph, handles, rows = recorded(rt)
        first = graph.verify()
        assert sum(one.tasks for one in first.proofs) >= 31
        assert "by themselves" in str(first)
        assert "pairs that share bytes in order" in str(first)
        for _ in range(3):
            graph.replay()
            assert graph.verify() == first
        graph.update(handles[3], by=2.0)
        graph.swap(rows[1], rt.zeros(640, "f4"))
        assert graph.verify() == first
        graph.replay()
        assert graph.verify() == first


def test_graph_of_lanes_says_who_orders_it(device: cl.Device) -> None:
    with acs.Runtime(device, backend="serial") as rt:
        graph, _, _ = recorded(rt)
        assert "the runtime orders these by their bytes" in str(graph.verify())


def test_wrong_word_on_the_device_is_found(device: cl.Device) -> None:
    with acs.Runtime(device, backend="device", bands="off") as rt:
        graph, _, _ = recorded(rt)
        segment = next(one for one in graph.pieces if isinstance(one, Segment))
        queue = rt.engine.backend.queues[0]
        words = np.empty(segment.resident.region.size // 4, np.uint32)
        cl.enqueue_copy(queue, words, segment.resident.region)
        task, counts = 5, int(words[10])
        words[counts + task] += 1
        cl.enqueue_copy(queue, segment.resident.region, words)
        with pytest.raises(InternalError, match=rf"task {task} is launch {task + 1} .*\(push\)"):
            graph.verify()


def test_verify_refuses_what_is_not_recorded(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        graph = rt.record()
        with pytest.raises(acs.UsageError, match="verify: the graph is not recorded yet"):
            graph.verify()


@pytest.mark.parametrize("backend", ["device", "serial"])
def test_command_proves_what_a_program_records(
    backend: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, "utf-8")
    assert cli.main(["verify", "--backend", backend, str(program)]) == 0
    out, err = capfd.readouterr()
    assert out == "the program's own\n"
    assert "graphs recorded 3" in err
    assert "(3 times)" in err
    assert ("segment 1: 2 launches" in err) == (backend == "device")
    assert ("--backend device" in err) == (backend == "serial")


def test_commands_without_words_say_what_is_missing(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "Begin with `acs-cl doctor`" in capfd.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["verify"])
    assert capfd.readouterr().err.endswith("are required: PROGRAM\n")


def test_command_proves_a_file(
    device: cl.Device, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with acs.Runtime(device) as rt:
        prog, x, y = rt.build(SOURCE), rt.zeros(64), rt.zeros(64)
        with rt.record() as graph:
            prog.push((64,), None, x, y, 1)
            prog.push((64,), None, y, x, 1)
        graph.save(tmp_path / "step.acs", x=x)
    assert cli.main(["verify", str(tmp_path / "step.acs")]) == 0
    assert "proven: graph of 2 launches: segment 1: 2 launches, 1 edges" in capfd.readouterr().err
    assert cli.main(["verify", str(tmp_path / "step.acs"), "--backend", "serial"]) == 1
    assert "takes no arguments, got --backend serial; options come before" in capfd.readouterr().err


def test_command_names_a_file_that_is_not_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that is a zip runs, and so does one that is none."""
    with acs.Runtime(backend="serial") as rt:
        prog, x = rt.build(SOURCE), rt.zeros(64)
        with rt.record() as graph:
            prog.push((64,), None, x, x, 1)
        graph.save(tmp_path / "step.acs")
    whole = (tmp_path / "step.acs").read_bytes()
    for wrong in (whole[:300], whole[:300] + whole[-30:], whole[:4]):
        (tmp_path / "step.acs").write_bytes(wrong)
        assert cli.main(["verify", str(tmp_path / "step.acs")]) == 1
        assert "is no graph of acs_cl" in capsys.readouterr().err
    with zipfile.ZipFile(tmp_path / "program.pyz", "w") as archive:
        archive.writestr("__main__.py", "print('it runs')")
    assert cli.main(["verify", str(tmp_path / "program.pyz")]) == 0
    assert "it runs" in capsys.readouterr().out


def test_command_tells_a_program_without_graphs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text("print(1)", "utf-8")
    assert cli.main(["verify", str(program)]) == 0
    assert "recorded no graph" in capfd.readouterr().err
    program.write_text("raise SystemExit(3)", "utf-8")
    assert cli.main(["verify", str(program), "--backend", "device"]) == 3
    said = capfd.readouterr().err
    assert "exit code 3" in said
    assert "--backend went to the program: options of ours come before its name" in said
    assert cli.main(["verify", str(tmp_path / "none.py")]) == 1


# ---- bands ---------------------------------------------------------------------------------------


def cut_in_two(rng: random.Random) -> tuple[proof.Words, list[Access], list[int]]:
    """Launches of which each second is two bands, and a task of none between them."""
    recorder, touched, launches = layout.Recorder(), [], []
    for launch in range(rng.randint(2, 9)):
        head = layout.head(launch % BODIES, 5, 50, 10, 1, 0)
        parts = ((0, 2), (2, 3)) if launch % 2 else ((0, 5),)
        before = list(range(len(launches)))[-3:]
        for first, tiles in parts:
            own = layout.band(head, first, tiles) if len(parts) > 1 else head
            recorder.add(own, b"", None, before)
            touched.append(Access((), (Span(launch + 1, 10 * first, 10 * tiles, 1, 10 * tiles),)))
            launches.append(launch)
    recorder.add(layout.JOINT, b"", None, [len(launches) - 1])
    image = recorder.image(2 * GROUPS * LAUNCHES)
    return image.words.copy(), [*touched, Access((), ())], [*launches, -1]


def test_bands_of_a_launch_are_proven_to_be_all_of_it() -> None:
    sent = proof.Sent(GROUPS, LAUNCHES, BODIES)
    for seed in range(30):
        rng = random.Random(seed)
        words, touched, launches = cut_in_two(rng)
        assert not proof.prove(words, touched, sent, launches).faults
        records = words[layout.HEADER_WORDS :][: 32 * len(launches)].reshape(-1, 32)
        second = launches.index(1) + 1
        wrong = {
            "not all tiles of one launch": (second, layout.TILES, 1 << 16 | 3),
            "its tiles are not its items": (second, layout.TILES, 4 << 16 | 3),
            "it is no band": (second, layout.BODY, records[second, 0] & ~np.uint32(layout.BAND)),
            "it is of no launch, and has work": (-1, layout.ITEMS, 1),
        }
        for text, (task, word, value) in wrong.items():
            before, records[task, word] = int(records[task, word]), value
            faults = proof.prove(words, touched, sent, launches).faults
            assert any(text in fault.text for fault in faults), (seed, text, faults)
            records[task, word] = before
