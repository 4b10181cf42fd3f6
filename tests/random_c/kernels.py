"""Random kernels: what `statements` writes, with a head, structures, helpers and barriers.

In: a seed. Out: a `Kernel`: its text, and `run`, which says what a launch touches. Work-items of a
group run one after another between two barriers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from random_c.expressions import INT, ROW, TABLE, Member, Q, Record, V, binary, number
from random_c.meaning import BYTES, KINDS, Item, Machine, Run, Undefined, View
from random_c.statements import TABLE_CELLS, S, Statements, block

NUMBERS = ("n", "m", "s")
PRELUDE = f"""\
#define MOST(a, b) ((a) > (b) ? (a) : (b))
constant int TABLE[{len(TABLE)}] = {{{", ".join(map(str, TABLE))}}};
"""


class Touched(NamedTuple):
    """The bytes of each argument that a launch reads and writes, from its view's begin."""

    reads: list[set[int]]
    writes: list[set[int]]
    group: tuple[int, ...] = ()
    """The group that it is about; else all of the launch."""


class Kernel:
    """A kernel with its meaning. `axes`: how many its launches have; `shifted`: whether they may
    have an offset; `alone`: whether they have one work-item."""

    writes: type[Statements] = Statements
    forms: Sequence[str] = ("row", "row", "row", "column")
    """Of pointers."""
    names: Sequence[str] = (*NUMBERS, "g")
    most_records = 2
    most_steps = 800

    axes: int
    shifted: bool
    alone: bool
    elements: Sequence[str]

    def __init__(self, seed: int) -> None:
        writer = self.writes(seed)
        chance = writer.chance
        self.seed, self.name = seed, f"k{seed}"
        self._shape(writer)
        arguments = []
        for at, element in enumerate(self.elements):
            const = at > 0 and chance.random() < 0.35
            form = chance.choice(self.forms)
            word = "const " if const else ""
            arguments.append(f"global {word}{element} *{'xyz'[at]}")
            writer.pointers.append(Q("xyz"[at], _argument(at), element, form, const))
        self._head_of_arguments = ", ".join(arguments)
        writer.pointers.append(Q("TABLE", lambda item: (TABLE_CELLS, 0), "int", "list", True,
                                 count=len(TABLE), word=""))  # fmt: skip
        writer.variables = [V(name, INT) for name in self.names]
        records = [_record(writer, at) for at in range(chance.randint(0, self.most_records))]
        helpers = [writer.helper() for _ in range(chance.choice([0, 0, 1, 2]))]
        head = self._head()
        local, self.local_arrays = self._locals(writer)
        lines = [*head, *local]
        count = chance.choice([1, 1, 2, 3]) if local else 1
        self._phases: list[tuple[Run, bool]] = []
        """Each with whether the group does it together, which is once."""
        for at in range(count):
            writer.barred = at < count - 1
            phase = block(self._phase(writer))
            self._phases.append((phase.run, False))
            lines += phase.c
            if at < count - 1:
                lines.append("barrier(CLK_LOCAL_MEM_FENCE);")
                if self.axes == 1 and chance.random() < 0.5:
                    copy = self._copy(writer)
                    self._phases.append((copy.run, True))
                    lines += copy.c
        numbers = ", ".join(f"int {name}" for name in NUMBERS)
        text = "\n    ".join(lines)
        self.c = "\n".join([
            *records, *helpers,
            f"kernel void {self.name}({', '.join(arguments)}, {numbers})\n{{\n    {text}\n}}",
        ])  # fmt: skip

    def _shape(self, writer: Statements) -> None:
        """Decide what launches look like, and what pointers lead to."""
        chance = writer.chance
        self.axes = chance.choice([1, 1, 1, 2, 3])
        self.shifted = chance.random() < 0.4
        self.alone = writer.alone = chance.random() < 0.4
        kinds = ["int", "int", "int", "uint", "uchar", "char", "short", "ushort", "long", "ulong",
                 "float", "double", "half"]  # fmt: skip
        self.elements = [chance.choice(kinds) for _ in range(chance.choice([1, 2, 2, 3]))]
        if "half" in self.elements and chance.random() < 0.8:
            self.elements = ["int" if one == "half" else one for one in self.elements]
        self.elements = ["short" if one == "half" else one for one in self.elements]

    def _phase(self, writer: Statements) -> list[S]:
        """Write what is between two barriers."""
        chance = writer.chance
        return [
            writer.statement(3) if chance.random() < 0.85 else writer.walked()
            for _ in range(chance.randrange(1, 5))
        ]

    def _head(self) -> list[str]:
        """The lines that number work-items."""
        if self.axes == 1 and not self.shifted:
            return ["int g = get_global_id(0), gs = get_global_size(0);"]
        inner = [f"get_global_id({axis}) - get_global_offset({axis})" for axis in range(3)]
        g = inner[0]
        if self.axes > 1:
            g = f"({inner[1]}) * get_global_size(0) + {g}"
        if self.axes > 2:
            g = f"({inner[2]}) * get_global_size(1) * get_global_size(0) + {g}"
        size = " * ".join(f"get_global_size({axis})" for axis in range(self.axes))
        return [f"int g = {g}, gs = {size};"]

    def _locals(self, writer: Statements) -> tuple[list[str], list[tuple[str, int]]]:
        """Memory of the group, of which each work-item has two elements, or all."""
        if writer.chance.random() < 0.75:
            return [], []
        name, element = "share", "int"
        count = 32
        own = Q("(share + get_local_id(0) % 16 * 2)",
                lambda item: (item.v[name], item.ids["local_id"][0] % 16 * 2), element, "list",
                count=2, word="local ")  # fmt: skip
        whole = Q("share", lambda item: (item.v[name], 0), element, "list", count=count,
                  word="local ")  # fmt: skip
        writer.pointers += [own, own, whole]
        lines = [f"local int {name}[{count}];",
                 f"for (int j = get_local_id(0); j < {count}; j += get_local_size(0)) "
                 f"{name}[j] = j;", "barrier(CLK_LOCAL_MEM_FENCE);"]  # fmt: skip
        return lines, [(name, count)]

    def _copy(self, writer: Statements) -> S:
        """A copy between memory of the group and of an argument, by the whole group."""
        chance = writer.chance
        some = [at for at, element in enumerate(self.elements) if element == "int"]
        if not some:
            return block([])
        at = chance.choice(some)
        back = chance.random() < 0.5 and f"const int *{'xyz'[at]}" not in self._head_of_arguments
        few = chance.choice([1, 3, 8, 12])
        more = number(chance.randrange(4))
        if chance.random() < 0.5:
            more = binary("&", writer.variable(V(chance.choice(NUMBERS), INT)), number(3))
        begin, count = more.run, few
        name = writer.fresh("e")
        first = f"{'xyz'[at]} + get_group_id(0) * get_local_size(0) * {ROW} + {more.c}"
        c = f"share + 2, {first}" if not back else f"{first}, share + 2"
        if few == 12:  # how many is known only when it is launched
            c, counted = f"{c}, (m & 7)", True
        else:
            c, counted = f"{c}, {few}", False

        def run(item: Item) -> None:
            many = item.v["m"] & 7 if counted else count
            at_first = item.ids["group_id"][0] * item.ids["local_size"][0] * ROW + begin(item)
            for j in range(many):
                one, other = (at, (at_first + j) * 4), (item.v["share"], 2 + j)
                if back:
                    item.store(one, "int", item.v["share"][2 + j])
                else:
                    other[0][2 + j] = item.load(one, "int")

        return S(
            [
                f"event_t {name} = async_work_group_copy({c}, 0);",
                f"wait_group_events(1, &{name});",
                "barrier(CLK_LOCAL_MEM_FENCE);",
            ],
            run,
        )

    def run(
        self, views: Sequence[View], numbers: Sequence[int], size: Sequence[int],
        local: Sequence[int], offset: Sequence[int],
    ) -> list[Touched]:  # fmt: skip
        """Run a launch on the bytes of its views. Gives what it touches, then what each group does.
        Raises `Undefined`, and the bytes are as they were."""
        kept = {view.base: bytes(view.data) for view in views}
        machine = Machine(views, self.most_steps)
        try:
            groups = self._run(machine, numbers, size, local, offset)
        except Undefined:
            for view in views:
                view.data[:] = kept[view.base]
            raise
        every = range(len(views))
        whole = Touched(
            [set().union(*(one.reads[at] for one in groups)) for at in every],
            [set().union(*(one.writes[at] for one in groups)) for at in every],
        )
        return [whole, *groups]

    def _run(
        self, machine: Machine, numbers: Sequence[int], size: Sequence[int],
        local: Sequence[int], offset: Sequence[int],
    ) -> list[Touched]:  # fmt: skip
        found = []
        groups = [whole // part for whole, part in zip(size, local, strict=True)]
        for group in product(*(range(count) for count in reversed(groups))):
            shared = {name: list(range(count)) for name, count in self.local_arrays}
            items = []
            for inside in product(*(range(count) for count in reversed(local))):
                w, within = group[::-1], inside[::-1]
                at = [a * b + c for a, b, c in zip(w, local, within, strict=True)]
                g = at[0] + size[0] * (at[1] + size[1] * at[2])
                ids = {"global_id": [a + b for a, b in zip(at, offset, strict=True)],
                       "local_id": within, "group_id": w, "global_size": size, "local_size": local,
                       "num_groups": groups, "global_offset": offset}  # fmt: skip
                v = dict(zip(NUMBERS, numbers, strict=True), **shared)
                v |= self._numbered(g, ids)
                item = Item(machine, g, v, ids)
                item.shared = {id(cells) for cells in shared.values()}
                items.append(item)
            for phase, together in self._phases:
                machine.local_races.clear()
                if together:  # by nobody that is one of them
                    phase(Item(machine, -2 - items[0].number, items[0].v, items[0].ids))
                else:
                    for item in items:
                        phase(item)
            found.append(Touched(machine.reads, machine.writes, group[::-1]))
            machine.reads, machine.writes = ([set() for _ in machine.views] for _ in "rw")
        return found

    def _numbered(self, g: int, ids: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Return what the head computes. `g`: the number of the work-item in its launch."""
        return {"g": g, "gs": prod(ids["global_size"])}


def _argument(at: int) -> Run:
    return lambda item: (at, 0)


def _record(writer: Statements, at: int) -> str:
    """Add a structure to those of a kernel, and give its text."""
    chance = writer.chance
    name = f"S{at}_{writer.seed}"
    members: list[Member] = []
    parts, end, most = [], 0, 1
    for index in range(chance.randrange(2, 5)):
        word = "abcd"[index]
        inner = chance.choice(writer.records) if writer.records and chance.random() < 0.3 else None
        element = chance.choice(list(KINDS))
        count = chance.choice([0, 0, 0, 2, 3])
        size, align = (inner.size, inner.align) if inner else (BYTES[element],) * 2
        end = -(-end // align) * align
        most = max(most, align)
        kind = f"struct {inner.name}" if inner else element
        parts.append(f"{kind} {word}{f'[{count}]' if count else ''};")
        for j in range(max(1, count)):
            words = f".{word}{f'[{j}]' if count else ''}"
            begin = end + j * size
            if inner:
                members += [Member(words + one.c, begin + one.at, one.element)
                            for one in inner.members]  # fmt: skip
            else:
                members.append(Member(words, begin, element))
        end += size * max(1, count)
    whole = -(-end // most) * most
    writer.records.append(Record(name, "", whole, most, tuple(members)))
    return f"struct {name} {{ {' '.join(parts)} }};"
