"""The CUDA peer gets the graphs that everybody else runs, and what it says is believed only if it
computed the same."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Environment

from acs_cl.benchmarks import compare
from acs_cl.benchmarks.peers import cuda_graphs, cuda_spawn, cuda_tiles
from acs_cl.benchmarks.suite import beside_cuda, documents
from acs_cl.benchmarks.workloads import graphs, shapes, synthetic
from acs_cl.opencl_c.kernel_files import kernel_source

TINY: dict[str, Any] = {w.name: w.presets["tiny"] for w in synthetic.WORKLOADS}


@pytest.mark.parametrize("name", TINY)
def test_file_says_all_of_a_graph(name: str) -> None:
    graph = TINY[name].graph(2)
    words = [int(word) for word in np.frombuffer(cuda_graphs.as_file(graph), "<u4")]
    words.reverse()

    def take(count: int) -> list[int]:
        return [words.pop() for _ in range(count)]

    magic, _, group, arrays, tasks = take(5)
    assert (magic, group) == (cuda_graphs.MAGIC, graphs.GROUP)
    assert tuple(take(arrays)) == graph.arrays
    assert [take(length) for length in graph.arrays] == [list(a) for a in graph.contents()]
    assert [take(length) for length in graph.arrays] == [list(a) for a in graphs.computed(graph)]
    read = []
    upstream = []
    for _ in range(tasks):
        updates, items, rounds, span, lane, reads, waits = take(7)
        into, *sources = (graphs.Region(*take(5)) for _ in range(1 + reads))
        task = graphs.Task(tuple(sources), into, bool(updates), items // group, rounds, lane)
        assert task.span == span
        read.append(task)
        upstream.append(tuple(take(waits)))
    assert not words
    assert tuple(read) == graph.tasks
    assert upstream == graphs.edges(graph)


def test_kernels_of_both_languages_are_the_same_ones() -> None:
    text = cuda_graphs.SOURCE.read_text("utf-8")
    assert f"MAGIC = {cuda_graphs.MAGIC:#x}, VERSION = {cuda_graphs.VERSION};" in text
    assert f"MOST_READS = {shapes.MOST_READS};" in text
    assert "x ^= x << 13; x ^= x >> 17; x ^= x << 5;" in text


def printed(**wrong: int) -> str:
    row = {"tasks": 3, "streams": 2, "wrong": wrong, "us_per_task": {"stream": [3.0, 1.0, 2.0]}}
    return json.dumps(row) + "\n"


def test_figures_of_a_wrong_run_are_refused() -> None:
    found = cuda_graphs.parsed(printed(stream=0), ["a"])
    assert found["a"]["us_per_task"]["stream"] == [3.0, 1.0, 2.0]
    with pytest.raises(cuda_graphs.PeerError, match=r"for b: \{'stream': 5\}"):
        cuda_graphs.parsed(printed(stream=0) + printed(stream=5), ["a", "b"])
    with pytest.raises(ValueError, match="argument"):
        cuda_graphs.parsed(printed(stream=0), ["a", "b"])


def test_nothing_is_measured_without_a_compiler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cuda_graphs, "compiler", lambda: None)
    assert cuda_graphs.measure({"a": TINY["chains"].graph(0)}) == {}
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(SystemExit) as ended:
        compare.main(["cuda", "chains", "--preset", "tiny"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == f"{cuda_graphs.NO_COMPILER}\n"
    with pytest.raises(SystemExit):
        compare.main(["cuda", "chain"])
    assert "no synthetic workload is called 'chain': chains, layers" in capsys.readouterr().err


WRITES_A_PROGRAM = """#!{python}
import sys
from pathlib import Path
program = Path(sys.argv[sys.argv.index("-o") + 1])
program.write_text(Path({program!r}).read_text("utf-8"), "utf-8")
program.chmod(0o755)
"""
SAYS_TIMES = """#!{python}
import json, struct, sys
rounds, streams, *files = sys.argv[1:]
ways = ("stream", "streams", "construct", "instantiate", "first", "new_graph", "replay")
for name in files:
    *_, tasks = struct.unpack("<5I", open(name, "rb").read(20))
    took = dict.fromkeys(ways, [1.25] * int(rounds))
    wrong = {{"stream": 7 * (tasks == 19)}}
    print(json.dumps({{"tasks": tasks, "streams": streams, "wrong": wrong, "us_per_task": took}}))
"""


@pytest.fixture
def compiler(tmp_path: Path, environment: Environment) -> None:
    """One whose program takes 1.25 us for everything, and is wrong where there are 19 tasks."""
    words, program = tmp_path / "nvcc", tmp_path / "program"
    program.write_text(SAYS_TIMES.format(python=sys.executable), encoding="utf-8")
    script = WRITES_A_PROGRAM.format(python=sys.executable, program=str(program))
    words.write_text(script, encoding="utf-8")
    words.chmod(0o755)
    environment(PATH=os.pathsep.join([str(tmp_path), os.environ["PATH"]]))


@pytest.mark.usefixtures("compiler")
def test_both_are_shown_side_by_side(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "both.json"
    words = ["--preset", "tiny", "--backend", "auto", "--json", str(path)]
    compare.main(["cuda", "one-array", "tree", *words])
    said = capsys.readouterr()
    head, _, row, tree = said.out.splitlines()[:4]
    ours = ["bare", "serial", "auto", "auto, later", "replay", "expert"]
    assert re.split(r"  +", head)[-len(ours) :] == ours
    assert "CUDA Graph, again" in head
    document = json.loads(path.read_text("utf-8"))
    entry = document["workloads"]["one-array"]
    ours = entry["rows"]["auto"]["ms"]["median"] * 1e3 / 20
    assert row.split()[:6] == ["one-array", "20", *["1.25"] * 4]
    assert f"{ours:,.2f}" in row.split()
    assert document["cuda"]["one-array"]["us_per_task"]["first"]["samples"] == 7
    assert tree.split()[:6] == ["tree", "19", *["failed"] * 4]
    assert "tree, CUDA: CUDA computed something else than NumPy for tree: {'stream': 7}" in said.out
    done = [line for line in said.err.splitlines() if "CUDA" in line]
    assert [line.partition("] ")[2] for line in done] == [
        "the program in CUDA is compiled", "one-array: CUDA", "tree: CUDA",
    ]  # fmt: skip


@pytest.mark.usefixtures("compiler")
def test_what_is_cut_off_has_written_what_was_done(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cut.json"
    words = ["--preset", "tiny", "--backend", "lanes", "--json", str(path)]
    compare.main(["cuda", "one-array", "chains", "--within", "0.001", *words])
    assert "left out for want of time: chains" in capsys.readouterr().out
    document = json.loads(path.read_text("utf-8"))
    assert list(document["workloads"]) == list(document["cuda"]) == ["one-array"]
    assert document["left_out"] == ["chains"]

    def cut(*args: object) -> None:
        if len(args) > 1 and args[1].name == "chains":
            raise KeyboardInterrupt
        return once(*args)

    once = beside_cuda._in_cuda
    monkeypatch.setattr(beside_cuda, "_in_cuda", cut)
    path.unlink()
    assert compare.main(["cuda", "one-array", "chains", *words]) == documents.INTERRUPTED
    said = capsys.readouterr()
    assert "interrupted: what was measured until then follows" in said.err
    assert "one-array" in said.out
    document = json.loads(path.read_text("utf-8"))
    assert list(document["workloads"]) == list(document["cuda"]) == ["one-array"]
    assert (document["left_out"], document["interrupted"]) == (["chains"], True)


@pytest.mark.usefixtures("compiler")
def test_without_a_card_nothing_is_measured(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho no CUDA-capable device is detected >&2; exit 1\n", "utf-8")
    with pytest.raises(SystemExit) as ended:
        compare.main(["cuda", "chains", "--preset", "tiny"])
    assert ended.value.code == 2
    assert "graphs failed: no CUDA-capable device is detected" in capsys.readouterr().err


def test_a_compiler_that_fails_is_one_message(
    monkeypatch: pytest.MonkeyPatch,
    environment: Environment,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "nvcc").symlink_to(str(shutil.which("false")))
    environment(PATH=os.pathsep.join([str(tmp_path), os.environ["PATH"]]))
    with pytest.raises(SystemExit) as ended:
        compare.main(["cuda", "chains", "--preset", "tiny"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith("nvcc failed: \n")
    monkeypatch.setattr(cuda_graphs, "LIMIT_S", 0.2)
    with pytest.raises(cuda_graphs.PeerError, match=r"sleep did not end within 0\.2 s"):
        cuda_graphs._run(["sleep", "30"])
    with pytest.raises(SystemExit):
        compare.main(["cuda", "chains", "--backend", "quick"])
    assert "no backend 'quick' on this device: serial" in capsys.readouterr().err


@pytest.mark.parametrize("preset", ["tiny", "small"])
def test_there_is_a_kernel_in_cuda_for_every_task(preset: str) -> None:
    plain = {(reads, False) for reads in range(shapes.MOST_READS + 1)} | {(0, True), (1, True)}
    for workload in synthetic.WORKLOADS:
        for task in workload.presets[preset].graph(0).tasks:
            if synthetic.kernel_name(task).endswith("_at"):
                assert task.updates, workload.name
                assert len(task.reads) <= 1
            else:
                assert (len(task.reads), task.updates) in plain


@pytest.mark.parametrize(
    "source", [cuda_graphs.SOURCE, cuda_tiles.SOURCE], ids=lambda one: one.name
)
def test_the_program_compiles(tmp_path: Path, source: Path) -> None:
    words = cuda_graphs.compiler()
    if words is None:
        pytest.skip("there is no CUDA compiler here")
    command = [words, "-c", "-std=c++17", "-arch=sm_80", "-o", str(tmp_path / "graphs.o")]
    done = subprocess.run(
        [*command, "-Xcompiler", "-Wall", str(source)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr


def test_a_program_that_spawns_is_written_down_for_cuda() -> None:
    kernels = ["restore", "queens"]
    words = np.frombuffer(cuda_spawn.recorded("queens", 4, kernels), "<u4").tolist()
    assert words[:2] == [1, 16]  # one array of 16 words
    assert words[18:26] == [1, kernels.index("queens"), 16, 2, 1, 0, 0, 4]  # found, 4
    assert words[26:29] == [1, 0, 16]
    assert sum(words[29:]) == 2


def test_kernels_that_spawn_are_the_same_in_cuda() -> None:
    text = cuda_spawn.in_cuda(kernel_source("spawning.cl"))
    assert 'extern "C" __global__ void queens(int *found, uint n) {' in text
    assert "__device__ bool is_near(int x, int y" in text
    assert "__device__ void visit(uint item, const int *to, int *level, int first" in text
    assert "global " not in text.replace("__global__ ", "")
    assert "\nkernel " not in text
