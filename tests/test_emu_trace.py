"""Traces of the emulator: what is written reads back, a wrong line is named, seeds are exact."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from acs_cl.emu.convert import from_timeline
from acs_cl.emu.generate import GRAPHS, Sizes, generate
from acs_cl.emu.trace import Entry, Trace, lines_of, load, parse, resolved, save
from acs_cl.errors import UsageError
from acs_cl.records import Span

SMALL = generate("sweep", 4, 4, seed=3)


@pytest.mark.parametrize("spans", [False, True])
@pytest.mark.parametrize("graph", GRAPHS)
def test_what_is_written_reads_back(graph: str, spans: bool, tmp_path: Path) -> None:
    trace = generate(graph, 5, 7, seed=11, spans=spans)
    save(trace, tmp_path / "trace.jsonl")
    again = load(tmp_path / "trace.jsonl")
    assert again._replace(entries=tuple(again.entries)) == trace._replace(
        entries=tuple(trace.entries)
    )


def test_every_field_reads_back(tmp_path: Path) -> None:
    first = Entry(1, "up", "write", total_ns=5, host_ns=7, writes=(Span(0, 0, 1, 1, 1),))
    second = Entry(2, "k", groups=3, items=64, registers=40, local_bytes=96, flops=9, bytes=8)
    second = second._replace(
        waits=(1,), segments=4, steps=7, rounds=6, reads=(Span(2, 8, 64, 3, 32),),
        whole_groups=1, on_lane=1,
    )  # fmt: skip
    trace = Trace("all", [first, second], "device", "spans", complete=False)
    save(trace, tmp_path / "trace.jsonl")
    assert load(tmp_path / "trace.jsonl") == trace


def test_files_of_versions_before_are_read_and_written_where_they_say_all() -> None:
    lines = list(lines_of(SMALL))
    assert '"acs_cl_emu_trace": 2' in lines[0]
    for version in (1, 3):
        lines[0] = lines[0].replace(lines[0][:22], f'{{"acs_cl_emu_trace": {version}', 1)
        assert parse(lines, "here") == SMALL
    last = SMALL.entries[-1]._replace(whole_groups=1)
    newer = SMALL._replace(entries=[*SMALL.entries[:-1], last])
    assert '"acs_cl_emu_trace": 3' in next(iter(lines_of(newer)))


def test_a_file_is_the_same_bytes_each_time() -> None:
    """Seeds are exact: this changes only with the format or the generator, and then on purpose."""
    text = "\n".join(line for graph in GRAPHS for line in lines_of(generate(graph, 6, 5, 42)))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "3cb5b6391bd8d7fe"
    assert generate("layers", 6, 5, 42) != generate("layers", 6, 5, 43)


WRONG = {
    "not JSON": ("{", "not JSON"),
    "a list": ("[]", "expected an object"),
    "out of order": ({"number": 3}, "expected launch number 2"),
    "a text as a number": ({"number": "2"}, "whole number"),
    "true as a number": ({"groups": True}, "whole number"),
    "a negative number": ({"groups": -1}, "whole number"),
    "a fraction": ({"group_ns": 1.5}, "whole number"),
    "an unknown key": ({"gropus": 1}, "unknown: gropus"),
    "a later upstream": ({"upstream": [2]}, "not before"),
    "the same upstream twice": ({"upstream": [1, 1]}, "twice"),
    "a launch zero": ({"upstream": [0]}, "not before"),
    "a wait for a later one": ({"waits": [2]}, "not before"),
    "no list": ({"upstream": 1}, "list of launch numbers"),
    "spans in a trace of edges": ({"reads": [], "writes": []}, "ordered by upstream has"),
    "no groups": ({"groups": 0}, "groups"),
    "two durations": ({"total_ns": 5}, "total_ns"),
    "no duration": ({"group_ns": 0}, "how long"),
    "an unknown kind": ({"kind": "jump"}, "one of"),
    "a copy with groups": ({"kind": "copy"}, "no groups"),
    "half whole groups": ({"whole_groups": 2}, "'whole_groups' and 'on_lane' are 0 or 1"),
    "no name": ({"name": 5}, "text"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_line_is_named(what: str) -> None:
    change, said = WRONG[what]
    lines = list(lines_of(SMALL))
    lines[2] = change if isinstance(change, str) else json.dumps(json.loads(lines[2]) | change)
    with pytest.raises(UsageError, match=f"here, line 3: .*{said}"):
        parse(lines, "here")


@pytest.mark.parametrize(
    "span", [[1, 0, 8, 1], [1, 0, 4, 1, 8], [1, 0, 8, 0, 8], [1, 0, 8, 1, 0], [1, -1, 8, 1, 8], 5]
)
def test_a_wrong_span_is_named(span: object) -> None:
    lines = list(lines_of(generate("chains", 2, 2, spans=True)))
    lines[3] = json.dumps(json.loads(lines[3]) | {"reads": [span]})
    with pytest.raises(UsageError, match="here, line 4: 'reads': a span"):
        parse(lines, "here")


@pytest.mark.parametrize(
    "change",
    [
        {"acs_cl_emu_trace": 4},
        {"acs_cl_emu_trace": True},
        {"clock": "wall"},
        {"unit": "us"},
        {"edges": "x"},
        {"name": 1},
    ],
)
def test_a_wrong_head_is_named(change: dict[str, object]) -> None:
    lines = list(lines_of(SMALL))
    lines[0] = json.dumps(json.loads(lines[0]) | change)
    with pytest.raises(UsageError, match="here, line 1: "):
        parse(lines, "here")


def test_a_file_cut_short_is_not_half_read(tmp_path: Path) -> None:
    save(SMALL, tmp_path / "trace.jsonl")
    text = (tmp_path / "trace.jsonl").read_bytes()
    for end in range(len(text) - 1):  # without the last line's end it is all there still
        (tmp_path / "cut.jsonl").write_bytes(text[:end])
        with pytest.raises(UsageError, match=r"cut.jsonl, line \d+: "):
            load(tmp_path / "cut.jsonl")


def test_a_file_that_is_none_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\x89PNG\r\n\xff\xfe")
    for name in ("picture", "nothing"):
        with pytest.raises(UsageError, match=f"{name}: cannot be read"):
            load(tmp_path / name)


@pytest.mark.parametrize("graph", GRAPHS)
def test_spans_give_the_edges_they_were_made_of(graph: str) -> None:
    """Each launch reads what its upstream wrote; the library's hazards find that, and no more."""
    made = generate(graph, 6, 6, seed=5)
    found = resolved(generate(graph, 6, 6, seed=5, spans=True))
    assert [entry.upstream for entry in found.entries] == [entry.upstream for entry in made.entries]
    assert all(entry.segments for entry in found.entries)


def test_memory_without_a_name_orders_everything() -> None:
    entries = [
        Entry(number, "k", groups=1, items=1, group_ns=1, writes=(Span(1, number, 1, 1, 1),))
        for number in (1, 2, 3)
    ]
    entries[1] = entries[1]._replace(writes=(Span(0, 0, 1, 1, 1),))
    found = resolved(Trace("any", entries, edges="spans"))
    assert [entry.upstream for entry in found.entries] == [(), (1,), (2,)]


def test_sizes_stay_between_their_limits() -> None:
    sizes = Sizes(groups=(3, 20), group_ns=(5, 9))
    entries = generate("trivial", 50, 50, 1, sizes).entries
    assert {entry.groups for entry in entries} == set(range(3, 21))
    assert {entry.group_ns for entry in entries} == set(range(5, 10))


def test_a_timeline_becomes_a_trace_and_says_what_is_missing(tmp_path: Path) -> None:
    one, other = [1, 0, 64, 1, 64], [2, 0, 64, 1, 64]
    slices = [
        {"number": 3, "name": "late", "clock": "device", "start_ns": 30, "end_ns": 70,
         "groups": 4, "items": 32, "reads": [one], "writes": [other]},
        {"number": 1, "name": "early", "clock": "device", "start_ns": 0, "end_ns": 20,
         "groups": 0, "items": 0, "reads": [], "writes": [one]},
        {"number": 5, "name": "task", "clock": "host", "start_ns": 0, "end_ns": 9,
         "groups": 0, "items": 0, "reads": [other], "writes": []},
    ]  # fmt: skip
    head = {"acs_cl_trace": 2, "clocks": ["device", "host"], "unit": "ns"}
    path = tmp_path / "timeline.jsonl"
    path.write_text("\n".join(map(json.dumps, [head, *slices])) + "\n", encoding="utf-8")
    trace, missing = from_timeline(path, items=64)
    assert not trace.complete
    assert trace.clock == "device"
    entries = resolved(trace).entries
    assert [(e.name, e.kind, e.upstream, e.groups, e.items, e.total_ns) for e in entries] == [
        ("early", "kernel", (), 1, 64, 20),
        ("late", "kernel", (1,), 4, 32, 40),
        ("task", "host", (2,), 0, 0, 9),
    ]
    said = " ".join(missing)
    assert "1 kernels do not say how many groups" in said
    assert "2 launches have no times" in said
    save(trace, tmp_path / "trace.jsonl")
    assert load(tmp_path / "trace.jsonl") == trace


SLICE = {
    "number": 8, "name": "k", "clock": "device", "start_ns": 5, "end_ns": 9, "groups": 3,
    "items": 8, "reads": [[1, 0, 64, 1, 64]], "writes": [], "program_ns": 1, "waits": [],
    "thread": 0,
}  # fmt: skip
WRONG_SLICES = {
    "not JSON": ("{", "not JSON"),
    "a list": ("[]", "expected an object"),
    "nothing but a number": ({"number": 1}, "not a slice: there is no name"),
    "a launch zero": (SLICE | {"number": 0}, "counted from 1"),
    "a number as a text": (SLICE | {"start_ns": "5"}, "'start_ns' has to be a whole number"),
    "a fraction": (SLICE | {"end_ns": 1e300}, "'end_ns' has to be a whole number"),
    "nothing as a number": (SLICE | {"program_ns": None}, "'program_ns' has to be a whole"),
    "negative groups": (SLICE | {"groups": -3}, "'groups' has to be a whole number"),
    "a name that is none": (SLICE | {"name": 5}, "'name' has to be a text"),
    "a clock on the wall": (SLICE | {"clock": "wall"}, "'clock' has to be one of"),
    "an end before its start": (SLICE | {"end_ns": 4}, "ends at 4, before it starts"),
    "half a span": (SLICE | {"reads": [[1, 0]]}, "a span is"),
    "a wait for a word": (SLICE | {"waits": "all"}, "list of launch numbers"),
}


def timeline(path: Path, *slices: object, **head: int) -> Path:
    lines = [{"acs_cl_trace": 3, **head}, *slices]
    said = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(said) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("what", WRONG_SLICES)
def test_a_wrong_line_of_a_timeline_is_named(what: str, tmp_path: Path) -> None:
    wrong, said = WRONG_SLICES[what]
    path = timeline(tmp_path / "timeline.jsonl", SLICE, wrong)
    with pytest.raises(UsageError, match=f"timeline.jsonl, line 3: .*{said}"):
        from_timeline(path, items=64)
    if isinstance(wrong, dict):
        inside = {"acs_cl_trace": 3, "slices": [SLICE, wrong]}
        path.write_text(json.dumps({"traceEvents": [], "acs_cl": inside}), encoding="utf-8")
        with pytest.raises(UsageError, match=f"timeline.jsonl, slice 2: .*{said}"):
            from_timeline(path, items=64)


def test_a_timeline_cut_short_is_not_half_read(tmp_path: Path) -> None:
    slices = [SLICE | {"number": number} for number in (1, 2, 3)]
    path = timeline(tmp_path / "timeline.jsonl", *slices, launches=3)
    text = path.read_bytes()
    assert len(from_timeline(path, items=64)[0].entries) == 3
    for end in range(1, len(text) - 1):
        path.write_bytes(text[:end])
        with pytest.raises(UsageError, match=r"timeline.jsonl, line \d: "):
            from_timeline(path, items=64)
    path.write_text('{"traceEvents": []}', encoding="utf-8")
    with pytest.raises(UsageError, match="events of another program"):
        from_timeline(path, items=64)


def test_a_timeline_that_begins_later_lacks_no_edges(tmp_path: Path) -> None:
    path = timeline(tmp_path / "timeline.jsonl", SLICE, SLICE | {"number": 9})
    trace, missing = from_timeline(path, items=64)
    assert trace.complete
    assert "7 launches before the first are not in it" in " ".join(missing)
    assert "have no times" not in " ".join(missing)


def test_a_number_beyond_all_sizes_is_refused() -> None:
    for change, said in (
        ({"group_ns": 1 << 63}, "'group_ns' has to be a whole number from 0, below 2"),
        ({"groups": 1 << 31}, "'groups' from 1 to 2,147,483,647"),
    ):
        lines = list(lines_of(SMALL))
        lines[2] = json.dumps(json.loads(lines[2]) | change)
        with pytest.raises(UsageError, match=f"here, line 3: .*{said}"):
            parse(lines, "here")


def test_a_key_that_is_there_twice_is_refused() -> None:
    lines = list(lines_of(SMALL))
    lines[2] = lines[2].replace("{", '{"groups": 4, ', 1)
    with pytest.raises(UsageError, match=r"line 3: not JSON \('groups' is there twice"):
        parse(lines, "here")


def test_what_could_not_be_read_back_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    wrong = SMALL._replace(entries=[SMALL.entries[0]._replace(group_ns=1 << 63)])
    with pytest.raises(UsageError, match=r"trace.jsonl, launch 1 .*'group_ns' has to be below 2"):
        save(wrong, path)
    assert not path.exists()
    many = timeline(tmp_path / "timeline.jsonl", SLICE | {"groups": 1 << 31})
    with pytest.raises(UsageError, match=r"timeline.jsonl, launch 1 .*'groups' from 1 to"):
        from_timeline(many, items=64)
