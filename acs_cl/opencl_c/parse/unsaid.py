"""What the tree of a function leaves unsaid: components of vectors, and missing parts of `for`.

Input: a function, and its body as nodes. Output: the same nodes, with components, and with an empty
statement for each missing part of a `for`. The parser also prints a function, without macros. There
members and loops stand in the order of the tree. Invariant: if the two differ in anything, nothing
is filled in. So that two differences do not make up for each other, all that the tree has is
printed: a function where that is not sure gets nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from acs_cl.opencl_c.parse import clang
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node
from acs_cl.opencl_c.parse.tree import Cursor

from ...records import NamedTuple

_TOKEN = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\.?\d(?:[eEpP][+-]|[\w.])*|\w+|->|\S")
_WORD = re.compile(r"[A-Za-z_]\w*$")
_NUMBERED = re.compile(r"[sS]([0-9a-fA-F]+)$")
_LETTERS = "xyzw", "rgba"
_OPENS, _CLOSES = frozenset("([{"), frozenset(")]}")
_NAMED_VALUES = frozenset({"{", ",", "(", "."})
"""Tokens before the dot of a designated value, or of three dots."""
_ASKED = frozenset(
    {n.SIZEOF_EXPR, n.OFFSET_EXPR, n.GENERIC_SELECTION, n.TYPEDEF_DECL, n.STRUCT_DECL,
     n.UNION_DECL, n.ENUM_DECL, n.FUNCTION_DECL, n.PARM_DECL}
)  # fmt: skip


class _Said(NamedTuple):
    members: list[tuple[str, str]]  # the token before the dot, and the name
    loops: list[tuple[bool, bool, bool]]  # which of the three parts there are


def complete(function: Cursor, body: Sequence[Node]) -> None:
    """Fill in what the tree of a function does not say."""
    members = [node for statement in body for node in _members(statement)]
    loops = [node for statement in body for node in _loops(statement)]
    if not any(one.component is not None for one in members) and all(
        len(one.children) == 4 for one in loops
    ):
        return
    is_printed = not any(_asks_aside(statement) for statement in body)
    said = _said(_TOKEN.findall(clang.printed(function)))
    sure = [node for node in members if not node.is_doubtful]
    fits = is_printed and len(said.members) == len(sure)
    if fits and all(map(_fits, sure, said.members)):
        for node in members:
            node.component = None
        for node, (_, name) in zip(sure, said.members, strict=True):
            if node.kind != n.MEMBER_REF_EXPR:
                node.component = components(name, len(node.children[0].parts))
    if is_printed and len(said.loops) == len(loops):
        for node, parts in zip(loops, said.loops, strict=True):
            if len(node.children) == 1 + sum(parts):
                own = iter(node.children)
                padded = [next(own) if there else n.empty(n.NULL_STMT) for there in parts]
                node.children = [*padded, next(own)]


def components(name: str, many: int) -> tuple[int, ...]:
    """Return the components that a name stands for, in a vector of so many. None: it is not
    understood. A vector of three has a fourth one, which has no value."""
    if match := _NUMBERED.match(name):
        return tuple(int(digit, 16) for digit in match[1])
    everyone = tuple(range(many + many % 2))
    halves = {"lo": everyone[: len(everyone) // 2], "hi": everyone[len(everyone) // 2 :],
              "even": everyone[::2], "odd": everyone[1::2]}  # fmt: skip
    if name in halves:
        return halves[name]
    for letters in _LETTERS:
        if all(letter in letters for letter in name):
            return tuple(map(letters.index, name))
    return ()


def _members(node: Node) -> Iterator[Node]:
    """Yield members and components below a node, as they are printed."""
    for child in node.children:
        yield from _members(child)
    if node.component is not None or (node.kind == n.MEMBER_REF_EXPR and node.name):
        yield node


def _asks_aside(node: Node, is_asked: bool = False) -> bool:
    """Tell whether there is a member, a component or a loop below a node that may not be printed,
    or that the tree may show twice: in the size of an array, which is printed as a number."""
    if is_asked and (node.component is not None or node.kind in (n.MEMBER_REF_EXPR, n.FOR)):
        return True
    is_odd = node.kind == n.UNEXPOSED_EXPR and len(node.children) > 1  # as `a ?: b`
    here = is_asked or is_odd or node.kind in _ASKED
    return any(_asks_aside(child, here) for child in node.children)


def _loops(node: Node) -> Iterator[Node]:
    if node.kind == n.FOR:
        yield node
    for child in node.children:
        yield from _loops(child)


def _fits(node: Node, said: tuple[str, str]) -> bool:
    """Tell whether a printed member may be this one."""
    before, name = said
    if node.kind == n.MEMBER_REF_EXPR and name != node.name:
        return False
    if node.component is not None:
        many = len(components(name, len(node.children[0].parts)))
        if many != (len(node.parts) or 1):
            return False
    base = node.children[0] if node.children else node
    while base.kind == n.UNEXPOSED_EXPR and len(base.children) == 1:
        if base.component is not None and not base.is_doubtful:
            return True
        base = base.children[0]
    if base.kind in (n.DECL_REF_EXPR, n.MEMBER_REF_EXPR) and base.name:
        return before == base.name
    return not _WORD.match(before)


def _said(tokens: Sequence[str]) -> _Said:
    found = _Said([], [])
    for at in range(1, len(tokens) - 1):
        token, before, after = tokens[at], tokens[at - 1], tokens[at + 1]
        if token in (".", "->"):
            if _WORD.match(after) and before not in _NAMED_VALUES:
                found.members.append((before, after))
        elif token == "for" and after == "(" and before not in (".", "->"):
            found.loops.append(_parts(tokens, at + 2))
    return found


def _parts(tokens: Sequence[str], at: int) -> tuple[bool, bool, bool]:
    """Tell which parts a `for` has whose first part begins at a token."""
    there = [False]
    depth = 0
    while at < len(tokens):
        token = tokens[at]
        if token in _CLOSES and not depth:
            break
        depth += (token in _OPENS) - (token in _CLOSES)
        if token == ";" and not depth:
            there.append(False)
        else:
            there[-1] = True
        at += 1
    first, second, third = (*there, False, False)[:3]
    return first, second, third
