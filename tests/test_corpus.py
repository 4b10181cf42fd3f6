"""The corpus counts what it says: kernels that build, causes of misses, results that agree."""

from __future__ import annotations

import json
from pathlib import Path

import pyopencl as cl
import pytest
from conftest import Environment

from acs_cl.benchmarks.validation import corpus, generators

SOURCES = {
    "one/good.cl": """
__kernel void add(__global float *a, __global const float *b, int n) {
  int i = get_global_id(0) + get_global_id(1) * get_global_size(0);
  if (i < n) a[i] += b[i] * SCALE; }
__kernel void mixed(__global int *a, __local int *t) {
  t[get_local_id(0)] = a[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE);
  a[get_global_id(0)] = t[0]; }
""",
    "one/images.cl": "__kernel void look(read_only image2d_t i, __global int *a) { *a = 1; }",
    "one/same.cl": "__kernel void look(read_only image2d_t i, __global int *a) { *a = 1; }",
    "two/broken.cl": "__kernel void no(__global int *a) { a = ; }",
    "two/header.cl": "int not_one(void);",
}


@pytest.fixture
def folders(tmp_path: Path, device: cl.Device, environment: Environment) -> list[Path]:
    environment(ACS_CL_CACHE=str(tmp_path / "cache"))
    for name, text in SOURCES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return [tmp_path / "one", tmp_path / "two"]


def test_counts_causes_and_results(folders: list[Path]) -> None:
    origins, answers = corpus.measured(folders)
    document = corpus.summary(origins)
    assert document["origins"]["one"]["names"] == ["good.cl", "images.cl"]
    assert document["origins"]["one"]["sources_with_guessed_macros"] == 1
    assert document["origins"]["two"]["excluded"] == 1
    assert (document["kernels"], document["translated_and_built"]) == (3, 2)
    assert list(document["misses_by_cause"]) == ["uses images, samplers, pipes or queues"]
    assert str(folders[0]) not in str(document)
    document["runs"] = {"one": corpus.agreements(answers["one"])}
    assert document["runs"] == {"one": {"counts": {"equal": 2}, "different": {}}}
    assert "66.7% of 3 kernels" in corpus.report(document)


def test_programs_leave_their_sources(
    tmp_path: Path, device: cl.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cl.Program, "build", cl.Program.build)  # put back afterwards
    generators.hook(tmp_path)
    cl.Program(cl.Context([device]), "__kernel void k() { int n = N; }").build(["-DN=1"])
    (source,) = tmp_path.glob("*.cl")
    assert "void k()" in source.read_text("utf-8")
    assert source.with_suffix(".options").read_text("utf-8") == "-DN=1"


def test_the_committed_result_is_of_many_kernels_and_adds_up() -> None:
    root = Path(__file__).resolve().parent.parent
    result = json.loads((root / "benchmarks/results/corpus.json").read_text("utf-8"))
    kernels, built = result["kernels"], result["translated_and_built"]
    misses = result["misses_by_cause"]
    assert kernels >= 200
    assert built >= 0.9 * kernels
    assert sum(misses.values()) == kernels - built
    assert len(misses) == 2
