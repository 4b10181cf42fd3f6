"""Standing declarations: which elements of an argument a launch touches, as data.

In: text such as "r", "w[4*gid:4*gid+4]" or "r[0:n], w[gid]", and the kernel's parameters. Out: a
`Declaration`, which turns a launch's sizes and integer arguments into byte rectangles
`(start, pitch, rows, width)`. Grammar: clauses separated by commas, each a mode (r, w, rw) and
maybe `[index]` or `[from:to]` in elements; `gid` (`gid0`) to `gid2`, `gsize` (`gsize0`) to
`gsize2`, integer arguments, integers, + - * // %, min(), max(). An index is affine in the gids.

Invariant: the rectangles cover what the clauses say for every work-item; they are exact where one
rectangle can say it, else its hull. Text is compiled to postfix programs of integers, which other
evaluators can run; nothing is handed to Python's own evaluator.
"""

# Long because: the grammar and its evaluator define one small language.

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

from acs_cl.access.signature import Parameter
from acs_cl.ranges import Rectangle, rectangle

Affine = tuple[int, int, int, int]  # a constant and the factors of gid0, gid1, gid2

# A program is a flat tuple: the first four operators are followed by their operand.
PUSH, GID, GSIZE, SCALAR, ADD, SUB, MUL, DIV, MOD, MIN, MAX, NEG = range(12)

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(//|[-+*%()\[\],:]))")
_INTEGERS = frozenset(
    f"{sign}{name}" for sign in ("", "u", "unsigned ") for name in ("char", "short", "int", "long")
) | {"unsigned", "size_t", "bool"}
_WORK_ITEM = {
    **{f"gid{i}": (GID, i) for i in range(3)}, "gid": (GID, 0),
    **{f"gsize{i}": (GSIZE, i) for i in range(3)}, "gsize": (GSIZE, 0),
}  # fmt: skip


class Clause(NamedTuple):
    """One clause: a mode, and programs for the first and past the last element, if not all."""

    mode: str
    low: tuple[int, ...] | None
    high: tuple[int, ...] | None
    text: str


class Declaration(NamedTuple):
    """What a declaration says; `names` are the integer arguments that programs refer to."""

    text: str
    clauses: tuple[Clause, ...]
    names: tuple[str, ...]

    @property
    def mode(self) -> str:
        """'r', 'w' or 'rw': all clauses together."""
        return "".join(flag for flag in "rw" if any(flag in c.mode for c in self.clauses))

    def ranges(
        self,
        global_size: Sequence[int],
        global_offset: Sequence[int] | None,
        scalars: Mapping[str, int],
        element_bytes: int,
        limit_bytes: int,
    ) -> tuple[list[Rectangle], list[Rectangle]]:
        """Byte rectangles that a launch reads and writes of an argument of `limit_bytes`.

        A ValueError says which clause leaves the argument; parts past its end are cut off, because
        global sizes are commonly rounded up.
        """
        reads: list[Rectangle] = []
        writes: list[Rectangle] = []
        offset = tuple(global_offset or ())
        values = tuple(int(scalars[name]) for name in self.names)
        for clause in self.clauses:
            for found in _clause_ranges(
                clause, tuple(global_size), offset, values, element_bytes, limit_bytes
            ):
                if "r" in clause.mode:
                    reads.append(found)
                if "w" in clause.mode:
                    writes.append(found)
        return reads, writes


def parse(text: str, parameters: Sequence[Parameter]) -> Declaration:
    """Compile a declaration for a kernel with these parameters. A ValueError shows the place."""
    return _Parser(text, parameters).declaration()


# ---- evaluation ----


def evaluate(program: tuple[int, ...], sizes: Sequence[int], values: Sequence[int]) -> Affine:
    """Run a program for one launch."""
    stack: list[Affine] = []
    at = 0
    while at < len(program):
        operator = program[at]
        at += 1
        if operator <= SCALAR:
            stack.append(_operand(operator, program[at], sizes, values))
            at += 1
        elif operator == NEG:
            a = stack.pop()
            stack.append((-a[0], -a[1], -a[2], -a[3]))
        else:
            b, a = stack.pop(), stack.pop()
            stack.append(_apply(operator, a, b))
    return stack[0]


def _operand(operator: int, operand: int, sizes: Sequence[int], values: Sequence[int]) -> Affine:
    if operator == GID:
        return 0, int(operand == 0), int(operand == 1), int(operand == 2)
    if operator == GSIZE:
        return (sizes[operand] if operand < len(sizes) else 1), 0, 0, 0
    return (operand if operator == PUSH else values[operand]), 0, 0, 0


def _apply(operator: int, a: Affine, b: Affine) -> Affine:
    if operator == ADD:
        return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]
    if operator == SUB:
        return a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]
    if operator == MUL:
        if any(a[1:]):
            a, b = b, a
        return a[0] * b[0], a[0] * b[1], a[0] * b[2], a[0] * b[3]
    if operator == MIN:
        return min(a[0], b[0]), 0, 0, 0
    if operator == MAX:
        return max(a[0], b[0]), 0, 0, 0
    if b[0] == 0:
        raise ValueError("division by zero")
    return (a[0] // b[0] if operator == DIV else a[0] % b[0]), 0, 0, 0


def _clause_ranges(
    clause: Clause, sizes: tuple[int, ...], offset: tuple[int, ...], values: tuple[int, ...],
    element_bytes: int, limit_bytes: int,
) -> list[Rectangle]:  # fmt: skip
    if 0 in sizes or limit_bytes <= 0:
        return []
    if clause.low is None or clause.high is None:
        return [(0, limit_bytes, 1, limit_bytes)]
    if element_bytes <= 0:
        raise ValueError(f"{clause.text}: the size of an element is not known, use a bare mode")
    try:
        low = evaluate(clause.low, sizes, values)
        high = evaluate(clause.high, sizes, values)
    except ValueError as error:
        raise ValueError(f"{clause.text}: {error}") from None
    found = _union(low, high, sizes, offset)
    if found is None:
        return []
    start, pitch, rows, width = (
        found[0] * element_bytes, found[1] * element_bytes, found[2], found[3] * element_bytes
    )  # fmt: skip
    if start < 0:
        raise ValueError(f"{clause.text}: starts {-start} bytes before the argument")
    if start >= limit_bytes:
        raise ValueError(
            f"{clause.text}: starts at byte {start}, the argument has {limit_bytes} bytes"
        )
    return _clip(start, pitch, rows, width, limit_bytes)


def _union(
    low: Affine, high: Affine, sizes: tuple[int, ...], offset: tuple[int, ...]
) -> Rectangle | None:
    """The rectangle of elements that [low, high) covers over all work-items."""
    steps = []  # (distance between neighbours, number of work-items) of each dimension
    first, last = low[0], high[0]
    for axis in range(min(len(sizes), 3)):
        begin = offset[axis] if axis < len(offset) else 0
        end = begin + sizes[axis] - 1
        first += min(low[axis + 1] * begin, low[axis + 1] * end)
        last += max(high[axis + 1] * begin, high[axis + 1] * end)
        if low[axis + 1] and sizes[axis] > 1:
            steps.append((abs(low[axis + 1]), sizes[axis]))
    if low[1:] != high[1:]:  # a width that depends on the work-item: the hull
        return (first, last - first, 1, last - first) if last > first else None
    width = high[0] - low[0]
    if width <= 0:
        return None
    return rectangle(first, last, width, steps)


def _clip(start: int, pitch: int, rows: int, width: int, limit: int) -> list[Rectangle]:
    rows = min(rows, (limit - start - 1) // pitch + 1)
    end = start + (rows - 1) * pitch
    kept = min(width, limit - end)
    if rows == 1:
        return [(start, kept, 1, kept)]
    if kept == width:
        return [(start, pitch, rows, width)]
    whole = [(start, pitch, rows - 1, width)] if rows > 2 else [(start, width, 1, width)]
    return [*whole, (end, kept, 1, kept)]


# ---- parsing ----


class _Token(NamedTuple):
    kind: str  # 'number' 'name' 'sign' 'end'
    text: str
    at: int


class _Code(NamedTuple):
    program: tuple[int, ...]
    constant: bool  # does not depend on the work-item


class _Parser:
    def __init__(self, text: str, parameters: Sequence[Parameter]) -> None:
        self.text = text
        self.parameters = parameters
        self.names: list[str] = []
        self.tokens: list[_Token] = []
        at = 0
        end = len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                self._fail(_Token("sign", text[at], at), f"unexpected {text[at]!r}")
            group = match.lastindex or 1
            kind = ("number", "name", "sign")[group - 1]
            self.tokens.append(_Token(kind, match[group], match.start(group)))
            at = match.end()
        self.tokens.append(_Token("end", "", end))
        self.position = 0

    def declaration(self) -> Declaration:
        clauses = [self._clause()]
        while self._accept(","):
            clauses.append(self._clause())
        if self._token.kind != "end":
            self._fail(self._token, "expected a comma or the end")
        return Declaration(self.text, tuple(clauses), tuple(self.names))

    def _clause(self) -> Clause:
        mode = self._next()
        if mode.text not in ("r", "w", "rw"):
            self._fail(mode, f"expected r, w or rw, got {mode.text or 'nothing'!r}")
        if not self._accept("["):
            return Clause(mode.text, None, None, mode.text)
        low = self._sum()
        if self._accept(":"):
            high = self._sum()
        else:
            high = _Code((*low.program, PUSH, 1, ADD), low.constant)
        close = self._expect("]")
        return Clause(mode.text, low.program, high.program, self.text[mode.at : close.at + 1])

    def _sum(self) -> _Code:
        left = self._product()
        while self._token.text in ("+", "-"):
            operator = ADD if self._next().text == "+" else SUB
            right = self._product()
            left = _Code(
                (*left.program, *right.program, operator), left.constant and right.constant
            )
        return left

    def _product(self) -> _Code:
        left = self._factor()
        while self._token.text in ("*", "//", "%"):
            sign = self._next()
            right = self._factor()
            both = left.constant and right.constant
            if sign.text == "*":
                if not left.constant and not right.constant:
                    self._fail(sign, "a product of two gids: an index must be affine in them")
                left = _Code((*left.program, *right.program, MUL), both)
            else:
                if not both:
                    self._fail(sign, f"{sign.text} is only for values that a launch fixes, not gid")
                operator = DIV if sign.text == "//" else MOD
                left = _Code((*left.program, *right.program, operator), True)
        return left

    def _factor(self) -> _Code:
        token = self._next()
        if token.text == "-":
            inner = self._factor()
            return _Code((*inner.program, NEG), inner.constant)
        if token.text == "+":
            return self._factor()
        if token.text == "(":
            inner = self._sum()
            self._expect(")")
            return inner
        if token.kind == "number":
            return _Code((PUSH, int(token.text)), True)
        if token.kind == "name":
            return self._name(token)
        got = token.text or "the end"
        return self._fail(token, f"expected a number, a name or '(', got {got!r}")

    def _name(self, token: _Token) -> _Code:
        if token.text in ("min", "max") and self._token.text == "(":
            return self._extreme(token)
        # An argument may be called like one of ours; then the argument is not reachable.
        if token.text in _WORK_ITEM:
            operator, axis = _WORK_ITEM[token.text]
            return _Code((operator, axis), operator == GSIZE)
        integers = [
            p.name for p in self.parameters if not p.is_pointer and p.type_name in _INTEGERS
        ]
        if token.text not in integers:
            known = ", ".join(integers) or "none here"
            why = f"unknown name {token.text!r}"
            if any(p.name == token.text for p in self.parameters):
                why = f"argument {token.text!r} is not an integer"
            self._fail(
                token, f"{why}; expected gid, gid0-2, gsize, gsize0-2, min(), max() "
                f"or an integer argument ({known})",
            )  # fmt: skip
        if token.text not in self.names:
            self.names.append(token.text)
        return _Code((SCALAR, self.names.index(token.text)), True)

    def _extreme(self, token: _Token) -> _Code:
        operator = MIN if token.text == "min" else MAX
        self._expect("(")
        result = self._sum()
        constant = result.constant
        while self._accept(","):
            value = self._sum()
            constant = constant and value.constant
            result = _Code((*result.program, *value.program, operator), True)
        self._expect(")")
        if not constant:
            self._fail(token, f"{token.text}() only of values that a launch fixes, not gid")
        return result

    # ---- tokens ----

    @property
    def _token(self) -> _Token:
        return self.tokens[self.position]

    def _next(self) -> _Token:
        token = self._token
        if token.kind != "end":
            self.position += 1
        return token

    def _accept(self, sign: str) -> bool:
        if self._token.kind == "sign" and self._token.text == sign:
            self.position += 1
            return True
        return False

    def _expect(self, sign: str) -> _Token:
        token = self._token
        if not self._accept(sign):
            self._fail(token, f"expected {sign!r}, got {token.text or 'the end'!r}")
        return token

    def _fail(self, token: _Token, why: str) -> NoReturn:
        marks = "^" * max(len(token.text), 1)
        raise ValueError(f"{why}\n  {self.text}\n  {' ' * token.at}{marks}")
