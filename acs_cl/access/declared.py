"""Declarations as data: which elements of an argument a launch touches.

Input: text such as "r", "w[4*gid:4*gid+4]" or "r[0:n], w[gid]", and the kernel's parameters.
Output: a `Declaration`, which turns a launch's sizes and integer arguments into byte rectangles
`(start, pitch, rows, width)`. Grammar: clauses separated by commas, each a mode (r, w, rw) and
maybe `[index]` or `[from:to]` in elements; `gid` (`gid0`) to `gid2`, `gsize` (`gsize0`) to
`gsize2`, integer arguments, integers, + - * // %, min(), max(). An index is affine in the gids.

Invariant: the rectangles cover the elements of the clauses for every work-item. They are exact if
one rectangle can say it, else its hull. Python's parser reads the text, because the grammar is a
part of Python's. Nothing goes to Python's evaluator.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from typing import NoReturn

from acs_cl.access.scalars import code
from acs_cl.access.signature import Parameter
from acs_cl.ranges import Rectangle, exact_rectangle

from ..records import NamedTuple

Affine = tuple[int, int, int, int]  # a constant and the factors of gid0, gid1, gid2
Values = Mapping[str, int]
Program = Callable[[Sequence[int], Values], Affine]
"""Computes an index from the sizes and integer arguments of a launch."""

_GIDS = {"gid": 0, "gid0": 0, "gid1": 1, "gid2": 2}
_SIZES = {"gsize": 0, "gsize0": 0, "gsize1": 1, "gsize2": 2}
_SUMS = {ast.Add: operator.add, ast.Sub: operator.sub}
_QUOTIENTS = {ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
_EXTREMES = {"min": min, "max": max}


class Clause(NamedTuple):
    """One clause: a mode, and programs for the first element and for the end, if not all."""

    mode: str
    low: Program | None
    high: Program | None
    text: str


class Declaration(NamedTuple):
    """A parsed declaration. `names`: the integer arguments that its programs use."""

    text: str
    clauses: tuple[Clause, ...]
    names: tuple[str, ...]

    @property
    def mode(self) -> str:
        """Return 'r', 'w' or 'rw' for all clauses together."""
        return "".join(flag for flag in "rw" if any(flag in c.mode for c in self.clauses))

    def ranges(
        self,
        global_size: Sequence[int],
        global_offset: Sequence[int] | None,
        scalars: Mapping[str, int],
        element_bytes: int,
        limit_bytes: int,
    ) -> tuple[list[Rectangle], list[Rectangle], list[Rectangle]]:
        """Return the bytes of an argument of `limit_bytes` that a launch reads, those that it
        writes, and those of these that are no hulls.

        Raises ValueError with the clause that leaves the argument. Whoever uses them cuts off parts
        behind its end, because global sizes are commonly rounded up.
        """
        reads, writes, sure = list[Rectangle](), list[Rectangle](), list[Rectangle]()
        offset = tuple(global_offset or ())
        values = {name: int(scalars[name]) for name in self.names}
        for clause in self.clauses:
            found, is_exact = _clause_ranges(
                clause, tuple(global_size), offset, values, element_bytes, limit_bytes
            )
            if "r" in clause.mode:
                reads += found
            if "w" in clause.mode:
                writes += found
                sure += found if is_exact else ()
        return reads, writes, sure


def parse(text: str, parameters: Sequence[Parameter]) -> Declaration:
    """Compile a declaration for a kernel with these parameters. A ValueError shows the place."""
    try:
        return _Parser(text, parameters).declaration()
    except RecursionError:
        raise ValueError("it has too many operators in one another") from None


def _clause_ranges(
    clause: Clause, sizes: tuple[int, ...], offset: tuple[int, ...], values: Values,
    element_bytes: int, limit_bytes: int,
) -> tuple[list[Rectangle], bool]:  # fmt: skip
    """Return the rectangles of a clause, and whether they have no byte besides."""
    if 0 in sizes or limit_bytes <= 0:
        return [], True
    if clause.low is None or clause.high is None:
        return [(0, limit_bytes, 1, limit_bytes)], True
    try:
        low, high = clause.low(sizes, values), clause.high(sizes, values)
    except ZeroDivisionError:
        raise ValueError(f"{clause.text}: division by zero") from None
    found, is_exact = _union(low, high, sizes, offset)
    if found is None:
        return [], True
    start, pitch, width = (element_bytes * found[at] for at in (0, 1, 3))
    if start < 0:
        raise ValueError(f"{clause.text}: starts {-start} bytes before the argument")
    if start >= limit_bytes:
        raise ValueError(
            f"{clause.text}: starts at byte {start}, the argument has {limit_bytes} bytes"
        )
    pitch, width = min(pitch, limit_bytes), min(width, limit_bytes)  # the rest is cut off
    return [(start, pitch, found[2], width)], is_exact


def _union(
    low: Affine, high: Affine, sizes: tuple[int, ...], offset: tuple[int, ...]
) -> tuple[Rectangle | None, bool]:
    """Return what [low, high) covers over all work-items, and whether that is no hull."""
    steps = []  # (distance between neighbours, number of work-items) of each dimension
    first, last = low[0], high[0]
    for axis in range(min(len(sizes), 3)):
        begin = offset[axis] if axis < len(offset) else 0
        end = begin + sizes[axis] - 1
        first += min(low[axis + 1] * begin, low[axis + 1] * end)
        last += max(high[axis + 1] * begin, high[axis + 1] * end)
        if low[axis + 1] and sizes[axis] > 1:
            steps.append((abs(low[axis + 1]), sizes[axis]))
    hull = first, last - first, 1, last - first
    if low[1:] != high[1:]:  # the width depends on the work-item
        return hull if last > first else None, False
    width = high[0] - low[0]
    exact = exact_rectangle(first, width, steps) if width > 0 else None
    return exact or (hull if width > 0 else None), exact is not None


# ---- parsing ----


class _Code(NamedTuple):
    program: Program
    constant: bool  # does not depend on the work-item


class _Parser:
    def __init__(self, text: str, parameters: Sequence[Parameter]) -> None:
        self.text = text.strip()
        self.parameters = parameters
        self.names: list[str] = []
        names = {parameter.name for parameter in parameters}
        taken = filter(iskeyword, names)  # Python keywords: its parser gets other names for them
        self.instead = {name.swapcase(): name for name in taken if name.swapcase() not in names}

    def declaration(self) -> Declaration:
        text = self.text
        for swapped, name in self.instead.items():
            text = re.sub(rf"\b{name}\b", swapped, text)
        try:
            tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError) as error:
            at = max(0, (getattr(error, "offset", None) or 1) - 1)
            self._fail(getattr(error, "msg", error) if self.text else "expected r, w or rw", at)
        clauses = tree.elts if isinstance(tree, ast.Tuple) else [tree]
        return Declaration(self.text, tuple(map(self._clause, clauses)), tuple(self.names))

    def _clause(self, node: ast.expr) -> Clause:
        mode = node.value if isinstance(node, ast.Subscript) else node
        if not isinstance(mode, ast.Name) or mode.id not in ("r", "w", "rw"):
            self._refuse(mode, "expected r, w or rw")
        text = ast.get_source_segment(self.text, node) or ""
        if not isinstance(node, ast.Subscript):
            return Clause(mode.id, None, None, text)
        index = node.slice
        if not isinstance(index, ast.Slice):
            low = self._code(index).program
            return Clause(mode.id, low, _sum(low, _number(1), operator.add), text)
        if index.step is not None or index.lower is None or index.upper is None:
            self._refuse(node, "expected [index] or [from:to]")
        return Clause(
            mode.id, self._code(index.lower).program, self._code(index.upper).program, text
        )

    def _code(self, node: ast.expr) -> _Code:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return _Code(_number(node.value), True)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            inner = self._code(node.operand)
            if isinstance(node.op, ast.UAdd):
                return inner
            return _Code(_sum(_number(0), inner.program, operator.sub), inner.constant)
        if isinstance(node, ast.BinOp):
            return self._pair(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self._extreme(node, node.func.id)
        return self._refuse(node, "expected a number, a name, min(), max(), or + - * // % of these")

    def _pair(self, node: ast.BinOp) -> _Code:
        left, right = self._code(node.left), self._code(node.right)
        both, sign = left.constant and right.constant, type(node.op)
        if sign in _SUMS:
            return _Code(_sum(left.program, right.program, _SUMS[sign]), both)
        if sign is ast.Mult:
            if not left.constant and not right.constant:
                self._refuse(node, "a product of two gids: an index must be affine in them")
            one, other = (right, left) if left.constant else (left, right)
            return _Code(_product(one.program, other.program), both)
        if sign not in _QUOTIENTS:
            self._refuse(node, "unexpected operator: there are + - * // %")
        if not both:
            self._refuse(node, "// and % are only for values that a launch fixes, not gid")
        return _Code(_fixed([left, right], _QUOTIENTS[sign]), True)

    def _name(self, node: ast.Name) -> _Code:
        # An argument may be called like one of ours; then the argument is not reachable.
        name = self.instead.get(node.id, node.id)
        if name in _GIDS:
            gid: Affine = (0, *(int(axis == _GIDS[name]) for axis in range(3)))  # type: ignore[assignment]
            return _Code(lambda sizes, values: gid, False)
        if name in _SIZES:
            axis = _SIZES[name]
            return _Code(lambda sizes, values: ((*sizes, 1, 1, 1)[axis], 0, 0, 0), True)
        integers = [p.name for p in self.parameters if (code(p) or "f") in "bBhHiIqQ"]
        if name not in integers:
            known = ", ".join(integers) or "none here"
            why = f"unknown name {name!r}"
            if any(p.name == name for p in self.parameters):
                why = f"argument {name!r} is not an integer"
            self._refuse(
                node, f"{why}; expected gid, gid0-2, gsize, gsize0-2, min(), max() "
                f"or an integer argument ({known})",
            )  # fmt: skip
        if name not in self.names:
            self.names.append(name)
        return _Code(lambda sizes, values: (values[name], 0, 0, 0), True)

    def _extreme(self, node: ast.Call, name: str) -> _Code:
        if name not in _EXTREMES or not node.args:
            self._refuse(node, f"unknown name {name!r}; there are min() and max()")
        found = list(map(self._code, node.args))
        if not all(one.constant for one in found):
            self._refuse(node, f"{name}() only of values that a launch fixes, not gid")
        return _Code(_fixed(found, lambda *all: _EXTREMES[name](all)), True)

    def _refuse(self, node: ast.expr, why: str) -> NoReturn:
        self._fail(why, node.col_offset, (node.end_col_offset or 0) - node.col_offset)

    def _fail(self, why: object, at: int, many: int = 1) -> NoReturn:
        raise ValueError(f"{why}\n  {self.text}\n  {' ' * at}{'^' * max(many, 1)}")


def _number(value: int) -> Program:
    return lambda sizes, values: (value, 0, 0, 0)


def _sum(one: Program, other: Program, sign: Callable[[int, int], int]) -> Program:
    def summed(sizes: Sequence[int], values: Values) -> Affine:
        a, b = one(sizes, values), other(sizes, values)
        return sign(a[0], b[0]), sign(a[1], b[1]), sign(a[2], b[2]), sign(a[3], b[3])

    return summed


def _product(one: Program, constant: Program) -> Program:
    def product(sizes: Sequence[int], values: Values) -> Affine:
        a, by = one(sizes, values), constant(sizes, values)[0]
        return a[0] * by, a[1] * by, a[2] * by, a[3] * by

    return product


def _fixed(of: Sequence[_Code], function: Callable[..., int]) -> Program:
    return lambda sizes, values: (function(*(o.program(sizes, values)[0] for o in of)), 0, 0, 0)
