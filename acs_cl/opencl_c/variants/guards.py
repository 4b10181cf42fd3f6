"""A variant of one kernel that reads from device memory whether it runs, and for how many items.

Input: a program's source and options, a kernel, whether it has a condition (`when`) and whether its
global size is counted. Output: a source and the name of the kernel to use in it. The new kernel
takes more parameters (`WHEN`, `COUNTED`). It returns at its top, before any barrier, so `__local`
variables and barriers stay legal. It stands in the preprocessed text where the kernel was, or
behind the helpers that get copies. The text has no other kernel unless something in it names one.
If asked for, variants with only a condition replace all kernels of the source.

Invariants: the condition and the count are the same for all work-items. So only whole groups return
if the group size divides the count. The kernel and its helpers see the count as global size:
helpers that ask for it get a copy that takes the count.
"""

# Long because: the text added to a kernel, and how variants are kept, belong together.

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import pyopencl as cl

from acs_cl.devices.facts import may_include
from acs_cl.opencl_c import cache
from acs_cl.opencl_c.modes import builtins
from acs_cl.opencl_c.parse import clang
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.clang import CannotParse
from acs_cl.opencl_c.parse.preprocess import Plain, is_named, plain_of, unit_with
from acs_cl.opencl_c.parse.tree import Cursor
from acs_cl.opencl_c.variants.edits import (
    Edits,
    at_end,
    at_top,
    changed,
    closing,
    edited,
    place_of,
    placed,
    renamed,
)

from ...records import NamedTuple

WHEN = "__global const uint *acs_when, ulong acs_when_at"
"""Memory, and a byte offset into it. Zero there: nothing runs."""

COUNTED = (
    "__global const uint *acs_count, ulong acs_count_at, uint acs_upto, uint acs_group, "
    "__global uint *acs_fault"
)
"""Memory and byte offset of the count, its limit, its divisor, and where a count that breaks these
rules is stored."""

_WHEN = "if (!*(__global const uint *)((__global const char *)acs_when + acs_when_at)) return;"

_LAST = "volatile int acs_end = 0;"
"""The last line of a kernel with calls that all work-items make together. Without it, PoCL 3.0
compiles a kernel wrongly that returns early and ends with such a call."""

_COUNTED = """\
uint acs_counted = *(__global const uint *)((__global const char *)acs_count + acs_count_at);
if (acs_counted > acs_upto || acs_counted % acs_group) {
    if (!(get_global_id(0) - get_global_offset(0)) && !(get_global_id(1) - get_global_offset(1))
        && !(get_global_id(2) - get_global_offset(2))) *acs_fault = acs_counted;
    return;
}
if (get_global_id(0) - get_global_offset(0) >= acs_counted) return;"""

_ANSWERS = """\
size_t acs_get_global_size(uint counted, uint d) { return d ? get_global_size(d) : counted; }
size_t acs_get_num_groups(uint counted, uint d)
{ return d ? get_num_groups(d) : (counted + get_local_size(0) - 1) / get_local_size(0); }
size_t acs_get_global_linear_id(uint counted)
{ return ((get_global_id(2) - get_global_offset(2)) * get_global_size(1)
          + get_global_id(1) - get_global_offset(1)) * counted
         + get_global_id(0) - get_global_offset(0); }
size_t acs_get_group_linear_id(uint counted)
{ return (get_group_id(2) * get_num_groups(1) + get_group_id(1)) * acs_get_num_groups(counted, 0)
         + get_group_id(0); }
"""
"""The built-ins that depend on the global size, with the count as one more argument."""

_ASKING = frozenset(re.findall(r"size_t acs_(\w+)", _ANSWERS))

MOST_TOGETHER = 32
"""Most kernels of a source whose variants are built at once."""


class Guarded(NamedTuple):
    """A variant. `collective`: a call that all work-items of a group have to make together, or
    ''."""

    source: str
    kernel: str
    collective: str


class _Asked(NamedTuple):
    """Variants of one kernel, or of all ('')."""

    source: str
    options: tuple[str, ...]
    device: cl.Device | None
    kernel: str
    when: bool
    counted: bool


class _Variants(NamedTuple):
    """A source with variants, and `collective` of each of their kernels."""

    source: str
    collective: dict[str, str]


class _Function(NamedTuple):
    """The functions of one name."""

    cursors: tuple[Cursor, ...]  # the definitions; an overloaded name has several
    calls: tuple[tuple[str, int], ...]  # name and position in the text, of all of them


def with_guards(
    source: str,
    options: Sequence[str],
    device: cl.Device | None,
    kernel: str,
    when: bool,
    counted: bool,
    together: bool = False,
) -> Guarded:
    """Make a variant of `kernel` with further parameters: those of `WHEN`, then those of `COUNTED`.
    `together`: a variant with only a condition is in one source with those of all other kernels.
    Results are kept on disk, because other processes ask for the same. Raises `CannotParse` if the
    source, or a helper that asks for sizes, cannot be rewritten."""
    asked = _Asked(source, tuple(options), device, kernel, when, counted)
    made = _kept(asked._replace(kernel="", when=True)) if together and not counted else None
    if made is None or kernel not in made.collective:
        made = _kept(asked)
    return Guarded(made.source, _name(kernel, when, counted), made.collective[kernel])


def _name(kernel: str, when: bool, counted: bool) -> str:
    return f"{kernel}__acs_{'when' * when}{'size' * counted}"


def _kept(asked: _Asked) -> _Variants:
    """Return variants from disk, or make them."""
    source, options, device, kernel, when, counted = asked
    words = clang.split_options(options)
    key = cache.key(source, f"guards of {kernel} {when} {counted}", words, clang.facts_of(device))
    # Included files are not part of the key, so such a variant is not kept.
    keep = not may_include(source, words)
    found = _from_record(cache.load(key)) if keep else None
    if found is None:
        found = _write(asked)
        if keep:
            cache.store(key, found._asdict())
    return found


def _from_record(record: cache.Record | None) -> _Variants | None:
    """Return the variants of a record. None: it is something else."""
    if record is None or record.keys() != set(_Variants._fields):
        return None
    source, collective = record["source"], record["collective"]
    if not isinstance(source, str) or not isinstance(collective, dict):
        return None
    return _Variants(source, {str(name): str(call) for name, call in collective.items()})


@lru_cache(maxsize=128)
def _write(asked: _Asked) -> _Variants:
    """Make variants. The result is remembered, because later runtimes ask for the same, also
    without a disk."""
    source, options, device = asked[:3]
    with clang.LOCK:
        if asked.kernel:
            made = _one(asked)
            clang.parse(made.source, options, device)
            return made
        made = _all(plain_of(source, options, device))
        try:
            clang.parse(made.source, options, device)
        except CannotParse:  # each by itself, then
            return _Variants("", {})
        return made


def _one(asked: _Asked) -> _Variants:
    """Make the variant of one kernel."""
    source, options, device, kernel, when, counted = asked
    unit = unit_with(source, options, device, kernel)
    functions = reached(unit, kernel)
    extra = [part for part, wanted in ((WHEN, when), (COUNTED, counted)) if wanted]
    lines = [part for part, wanted in ((_WHEN, when), (_COUNTED, counted)) if wanted]
    asking = _asking(functions) if counted else set()
    edits = _calls(unit, functions[kernel], asking)
    name = _name(kernel, when, counted)
    edits += _frame(unit, functions, kernel, name, ", ".join(extra), "\n".join(lines))
    cursor = unit.kernels[kernel]
    helpers = [functions[helper] for helper in functions if helper in asking and helper != kernel]
    place = place_of(unit, cursor, (one for helper in helpers for one in helper.cursors))
    parts = [_ANSWERS] if counted else []
    parts += [_copy(unit, helper, asking, place) for helper in helpers]
    parts.append(edited(unit, cursor, edits, place))
    text = "\n".join(parts)
    source = placed(unit, cursor, text, place, is_named(source, options, device, kernel))
    return _Variants(source, {kernel: _collective(functions)})


def _all(plain: Plain) -> _Variants:
    """Make variants with a condition in place of all kernels, except kernels that are named
    elsewhere. None if there are many, because most would be built in vain."""
    unit, edits = plain.unit, []
    kernels = [name for name in unit.kernels if plain.words[name] == 1]
    if len(kernels) > MOST_TOGETHER:
        return _Variants("", {})
    collective = {}
    for name in kernels:
        functions = reached(unit, name)
        edits += _frame(unit, functions, name, _name(name, True, False), WHEN, _WHEN)
        collective[name] = _collective(functions)
    return _Variants(changed(unit.data, 0, len(unit.data), edits), collective)


def _collective(functions: dict[str, _Function]) -> str:
    names = (name for function in functions.values() for name, _ in function.calls)
    return next((name for name in names if builtins.meets(name)), "")


def reached(unit: clang.Unit, kernel: str) -> dict[str, _Function]:
    """Return the kernel and the functions it may call, called ones first. Of an overloaded name, it
    may call each."""
    found: dict[str, _Function] = {}
    visited: set[str] = set()

    def visit(name: str) -> None:
        visited.add(name)
        cursors = tuple(unit.functions[name])
        calls = tuple(call for cursor in cursors for call in _references(cursor))
        for called, _ in calls:
            if called in unit.functions and called not in visited:
                visit(called)
        found[name] = _Function(cursors, calls)

    visit(kernel)
    return found


def _references(cursor: Cursor) -> list[tuple[str, int]]:
    """Return every function named below a cursor, and where."""
    found = []
    below = [cursor]
    while below:
        for child in clang.library().collect(below.pop()):
            below.append(child)
            if child._kind_id == n.DECL_REF_EXPR:
                target = child.referenced
                if target is not None and target._kind_id == n.FUNCTION_DECL:
                    found.append((target.spelling, child.location.offset))
    return found


def _asking(functions: dict[str, _Function]) -> set[str]:
    """Return the functions that ask for a counted size, or call one that does."""
    asking = set(_ASKING)
    for name, function in functions.items():
        if any(called in asking for called, _ in function.calls):
            if any("overloadable" in clang.declaration_text(one) for one in function.cursors):
                raise CannotParse(f"function {name} asks for the global size and is overloaded")
            asking.add(name)
    return asking


def _calls(unit: clang.Unit, function: _Function, asking: set[str]) -> Edits:
    """Redirect each call of a function that asks to its copy, with the count as first argument."""
    data = unit.data
    edits: Edits = []
    for name, place in function.calls:
        if name not in asking:
            continue
        end = place + len(name)
        if data[place:end] != name.encode():
            raise CannotParse(f"a call of {name} is not where it is written")
        opening = data.index(b"(", end)
        last = data[opening + 1 :].lstrip()[:1] == b")"
        edits.append((place, end, f"acs_{name}"))
        edits.append((opening + 1, opening + 1, "acs_counted" if last else "acs_counted, "))
    return edits


def _parameters(unit: clang.Unit, cursor: Cursor) -> tuple[int, int, bool]:
    """Return where the parameter list of a function begins and ends, and whether it is not
    empty."""
    opening = unit.data.index(b"(", cursor.location.offset + len(cursor.spelling.encode())) + 1
    return opening, closing(unit.data, opening), bool(n.parameters_of(cursor))


def _frame(
    unit: clang.Unit,
    functions: dict[str, _Function],
    kernel: str,
    name: str,
    extra: str,
    lines: str,
) -> Edits:
    """Return edits for the kernel's new name, its further parameters, and its first and last
    lines."""
    cursor = unit.kernels[kernel]
    begin, end, some = _parameters(unit, cursor)
    edits = [
        renamed(unit, cursor, name),
        (end, end, f", {extra}") if some else (begin, end, extra),
        at_top(unit, cursor, f"\n{lines}\n"),
    ]
    return [*edits, at_end(cursor, f"\n{_LAST}\n")] if _collective(functions) else edits


def _copy(unit: clang.Unit, function: _Function, asking: set[str], place: int) -> str:
    """Return a copy of a helper that takes the count and passes it on."""
    (cursor,) = function.cursors  # one that asks is not overloaded
    begin, end, some = _parameters(unit, cursor)
    edits = _calls(unit, function, asking)
    edits.append(renamed(unit, cursor, f"acs_{cursor.spelling}"))
    edits.append((begin, begin if some else end, "uint acs_counted" + ", " * some))
    return edited(unit, cursor, edits, place)
