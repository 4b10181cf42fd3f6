"""The graph of launches as a file: what is read back is what ran."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest

import acs_cl as acs
from acs_cl.observe.dag import GRAPHML, Dag, Link, Node, of_slices, save

SOURCE = """
kernel void add(global const uint *x, global uint *y)
{ y[get_global_id(0)] += x[get_global_id(0)]; }
kernel void put(global uint *y) { y[get_global_id(0)] = 7; }
"""
ENDINGS = (".dot", ".graphml", ".json")


class Read(NamedTuple):
    """Names of nodes by number, and edges with their kinds and bytes."""

    names: dict[int, str]
    edges: set[tuple[int, int, str, str]]


def read_json(path: Path) -> Read:
    found = json.loads(path.read_text("utf-8"))
    assert found["acs_cl_dag"] == 1
    edges = {(e["upstream"], e["number"], e["kind"], e["bytes"]) for e in found["edges"]}
    return Read({node["number"]: node["name"] for node in found["nodes"]}, edges)


def read_graphml(path: Path) -> Read:
    root = ElementTree.parse(path).getroot()
    space = {"g": GRAPHML}
    names = {one.attrib["id"]: one.attrib["attr.name"] for one in root.findall("g:key", space)}

    def values(one: ElementTree.Element) -> dict[str, str]:
        return {names[data.attrib["key"]]: data.text or "" for data in one.findall("g:data", space)}

    nodes, edges = {}, set()
    for one in root.iterfind("g:graph/g:node", space):
        said = values(one)
        assert one.attrib["id"] == f"n{said['number']}"
        nodes[int(said["number"])] = said["name"]
    for one in root.iterfind("g:graph/g:edge", space):
        said = values(one)
        ends = int(one.attrib["source"][1:]), int(one.attrib["target"][1:])
        edges.add((*ends, said["kind"], said["bytes"]))
    return Read(nodes, edges)


TEXT = r'"((?:[^"\\]|\\.)*)"'


def plain(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)


def read_dot(path: Path) -> Read:
    nodes, edges = {}, set()
    text = path.read_text("utf-8")
    assert text.startswith("digraph launches {\n")
    assert text.endswith("}\n")
    for number, label in re.findall(rf"^  n(\d+) \[label={TEXT}\];$", text, re.MULTILINE):
        said, _, name = plain(label).split("\n")[0].partition(": ")
        assert said == number
        nodes[int(number)] = name
    pattern = rf"^  n(\d+) -> n(\d+) \[label={TEXT}, tooltip={TEXT}, color={TEXT}\];$"
    for up, number, kind, said, _ in re.findall(pattern, text, re.MULTILINE):
        edges.add((int(up), int(number), plain(kind), plain(said)))
    assert len(text.splitlines()) == 3 + len(nodes) + len(edges)
    return Read(nodes, edges)


READ: dict[str, Callable[[Path], Read]] = {
    ".dot": read_dot, ".graphml": read_graphml, ".json": read_json
}  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_was_traced_is_read_back(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"step{ending}"
    with acs.Runtime(backend="lanes", trace=True) as rt:
        prog = rt.build(SOURCE)
        x, y = rt.zeros(64, np.uint32), rt.zeros(64, np.uint32)
        rt.finish()
        rt.trace.clear()
        first = prog.put((64,), (16,), x)
        second = prog.add((64,), (16,), x, y)
        third = prog.put((16,), (16,), x[:16])
        rt.finish()
        rt.dag(path)
        base = first.access.writes[0].base
    read = READ[ending](path)
    assert read.names == {first.number: "put", second.number: "add", third.number: "put"}
    assert (first.number, second.number, "RAW", f"RAW on bytes 0..256 of base {base}") in read.edges
    assert (second.number, third.number, "WAR", f"WAR on bytes 0..64 of base {base}") in read.edges
    assert len(read.edges) == 2
    assert "4" in path.read_text("utf-8")  # groups


@pytest.mark.parametrize("backend", ["lanes", "device"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_recorded_graph_has_no_times(ending: str, backend: str, tmp_path: Path) -> None:
    path = tmp_path / f"graph{ending}"
    with acs.Runtime(backend=backend) as rt:
        prog = rt.build(SOURCE)
        x, y = rt.zeros(64, np.uint32), rt.zeros(64, np.uint32)
        graph = rt.record()
        with pytest.raises(acs.UsageError):
            graph.dag(path)
        with graph:
            prog.put((64,), (16,), x)
            prog.add((64,), (16,), x, y)
            rt.call(lambda values: None, reads=y)
        graph.dag(path)
    read = READ[ending](path)
    assert [read.names[number] for number in (1, 2)] == ["put", "add"]
    assert {(up, number, kind) for up, number, kind, _ in read.edges} == {
        (1, 2, "RAW"), (2, 3, "RAW")
    }  # fmt: skip
    if ending == ".json":
        nodes = json.loads(path.read_text("utf-8"))["nodes"]
        assert all(node["took_ns"] == -1 for node in nodes)
        assert [node["groups"] for node in nodes] == [4, 4, 0]
        assert all(node["route"] for node in nodes)


def test_a_measured_block_has_one_too(tmp_path: Path) -> None:
    with acs.Runtime(backend="device") as rt:
        prog = rt.build(SOURCE)
        x = rt.zeros(64, np.uint32)
        with rt.measure() as m:
            prog.put((64,), (16,), x)
            x.get()
        m.dag(tmp_path / "step.json")
    nodes = json.loads((tmp_path / "step.json").read_text("utf-8"))["nodes"]
    assert [node["name"] for node in nodes] == ["put", "read"]
    assert all(node["took_ns"] >= 0 and node["clock"] == "device" for node in nodes)
    assert all("device" in node["route"] or "lane" in node["route"] for node in nodes)


def test_any_name_is_read_back(tmp_path: Path) -> None:
    lots = random.Random(4)
    letters = "ab\"\\<>&{}[]; ->é\N{SNOWMAN}'"
    for _ in range(60):
        names = ["".join(lots.choices(letters, k=lots.randrange(1, 9))) for _ in range(6)]
        nodes = [Node(at, one, 2, 64, "lane 0", 5, 7, "device") for at, one in enumerate(names, 1)]
        links = {
            (lots.randrange(1, number), number): Link(0, 0, "RAW", lots.choice(names), 4)
            for number in range(2, 7)
        }
        edges = [link._replace(upstream=up, number=at) for (up, at), link in links.items()]
        for ending in ENDINGS:
            save(Dag(nodes, edges), tmp_path / f"x{ending}")
            read = READ[ending](tmp_path / f"x{ending}")
            assert read.names == dict(enumerate(names, 1))
            assert read.edges == {(e.upstream, e.number, e.kind, e.bytes) for e in edges}


def test_bad_input_is_told(tmp_path: Path) -> None:
    with acs.Runtime() as rt:
        with pytest.raises(acs.UsageError, match="trace=True"):
            rt.dag(tmp_path / "step.dot")
        with rt.measure() as m:
            rt.zeros(4)
        with pytest.raises(acs.UsageError, match=r"written as .dot, .graphml, .json"):
            m.dag(tmp_path / "step.png")
        with pytest.raises(acs.UsageError, match="cannot be written"):
            m.dag(tmp_path / "nowhere" / "step.dot")
    assert of_slices([]) == Dag([], [])
