"""The graph of launches as a file: DOT, GraphML or JSON, by the ending of its name.

Input: launches that were observed or recorded. Output: a file. A launch is a node with number,
kernel, sizes and route, and with its time if it was traced. An edge has the kind of its hazard and
the bytes that cause it.

Invariant: an edge goes from a launch to a later one, and names bytes that both touch. An edge of
kind `other` names none: memory changed hands, or the program asked for that order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

from ..errors import UsageError
from ..host import output
from ..records import Access, NamedTuple, Pair
from .commands import sizes_of
from .edges import Edges, access_of, by_bytes, edges_of, meetings
from .record import place_of
from .slices import Slice

VERSION = 1
COLOURS = {"RAW": "#0072b2", "WAR": "#e69f00", "WAW": "#d55e00", "other": "#8a7dc4"}
GRAPHML = "http://graphml.graphdrawing.org/xmlns"


class Node(NamedTuple):
    """A launch. Sizes are 0 where the driver chose them; times are -1 where they were not taken."""

    number: int
    name: str
    groups: int
    items: int
    route: str
    start_ns: int = -1
    took_ns: int = -1
    clock: str = ""


class Link(NamedTuple):
    """An edge to an earlier launch. `bytes`: 'RAW on bytes 0..64 of base 1; …'."""

    upstream: int
    number: int
    kind: str
    bytes: str
    nbytes: int
    """Size of the first interval of these bytes."""


class Dag(NamedTuple):
    """Nodes in program order, and edges."""

    nodes: Sequence[Node]
    links: Sequence[Link]


def of_slices(slices: Iterable[Slice], where: dict[int, str] | None = None) -> Dag:
    """Return the graph of traced launches. `where`: routes, more exact than the slices' own."""
    ordered = sorted(slices, key=lambda one: one.number)
    nodes = [
        Node(
            one.number,
            one.name,
            one.groups,
            one.items,
            (where or {}).get(one.number) or place_of(one),
            one.start_ns,
            one.end_ns - one.start_ns,
            one.clock,
        )
        for one in ordered
    ]
    access = {one.number: access_of(one) for one in ordered}
    return Dag(nodes, _links(access, edges_of(ordered)))


def of_recorded(launches: Iterable[Pair], routes: Sequence[str]) -> Dag:
    """Return the graph of a recording, whose launches are numbered from 1."""
    nodes: list[Node] = []
    access: dict[int, Access] = {}
    for number, ((command, touched), route) in enumerate(zip(launches, routes, strict=True), 1):
        nodes.append(Node(number, command.name, *sizes_of(command), route))
        access[number] = touched
    return Dag(nodes, _links(access, by_bytes(access)))


def _links(access: dict[int, Access], edges: Edges) -> list[Link]:
    links = []
    for number, all_ in edges.items():
        for upstream, kind in all_:
            if upstream not in access:
                continue
            met = meetings(access[upstream], access[number])
            first = met[0].bytes if met else (0, 0)
            links.append(
                Link(upstream, number, kind, "; ".join(map(str, met)), first[1] - first[0])
            )
    return links


# ---- files ---------------------------------------------------------------------------------------


def save(dag: Dag, path: str | Path) -> None:
    """Write the graph in the format that the ending of the path names."""
    to = output.path_of(path, "graph")
    if to.suffix not in FORMATS:
        raise UsageError(f"{to.name}: a graph is written as {', '.join(FORMATS)}, by its ending")
    output.write(to, FORMATS[to.suffix](dag), "graph")


def _json(dag: Dag) -> str:
    document = {
        "acs_cl_dag": VERSION,
        "nodes": [one._asdict() for one in dag.nodes],
        "edges": [one._asdict() for one in dag.links],
    }
    return json.dumps(document, indent=1) + "\n"


def _dot(dag: Dag) -> str:
    lines = ["digraph launches {", '  rankdir=LR; node [shape=box, fontname="sans-serif"];']
    for one in dag.nodes:
        lines.append(f"  n{one.number} [label={_quoted(_label(one))}];")
    for link in dag.links:
        values = {
            "label": link.kind,
            "tooltip": link.bytes,
            "color": COLOURS.get(link.kind, "gray"),
        }
        said = ", ".join(f"{key}={_quoted(value)}" for key, value in values.items())
        lines.append(f"  n{link.upstream} -> n{link.number} [{said}];")
    return "\n".join([*lines, "}"]) + "\n"


def _label(one: Node) -> str:
    lines = [f"{one.number}: {one.name}"]
    if one.groups:
        lines.append(f"{one.groups} groups of {one.items}")
    took = f", {one.took_ns / 1e3:.1f} us ({one.clock} clock)" if one.took_ns >= 0 else ""
    return "\n".join([*lines, one.route + took])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _graphml(dag: Dag) -> str:
    root = ElementTree.Element("graphml", xmlns=GRAPHML)
    kinds = {int: "long", str: "string"}
    for element, example in (("node", _EXAMPLE), ("edge", _LINK)):
        for key, value in _values(example).items():
            root.append(
                ElementTree.Element(
                    "key",
                    {
                        "id": f"{element}-{key}",
                        "for": element,
                        "attr.name": key,
                        "attr.type": kinds[type(value)],
                    },
                )
            )
    graph = ElementTree.SubElement(root, "graph", id="launches", edgedefault="directed")
    for one in dag.nodes:
        _data(ElementTree.SubElement(graph, "node", id=f"n{one.number}"), "node", one)
    for link in dag.links:
        ends = {"source": f"n{link.upstream}", "target": f"n{link.number}"}
        _data(ElementTree.SubElement(graph, "edge", ends), "edge", link)
    ElementTree.indent(root)
    return ElementTree.tostring(root, "unicode", xml_declaration=True) + "\n"


_EXAMPLE = Node(0, "", 0, 0, "")
_LINK = Link(0, 0, "", "", 0)


def _values(one: Node | Link) -> dict[str, int | str]:
    """Return the attributes of a node or an edge, without the ends."""
    values: dict[str, int | str] = one._asdict()
    ends = ("upstream", "number") if isinstance(one, Link) else ()
    return {key: value for key, value in values.items() if key not in ends}


def _data(element: ElementTree.Element, kind: str, one: Node | Link) -> None:
    for key, value in _values(one).items():
        child = ElementTree.SubElement(element, "data", key=f"{kind}-{key}")
        child.text = "".join(letter for letter in str(value) if letter >= " " or letter in "\t\n")


FORMATS: dict[str, Callable[[Dag], str]] = {".dot": _dot, ".graphml": _graphml, ".json": _json}
