"""The preprocessor, pcpp's, with what OpenCL's compilers do otherwise.

Input: a source, and definitions of macros. Output: tokens of the source after its directives.
Invariant: it raises `CannotParse` where the tokens might not mean the same as the source.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from typing import NoReturn

from acs_cl.devices.facts import CONTINUED, CannotParse
from acs_cl.opencl_c.parse.expansion import Expansion, Token, kinds_of

from ...records import Protocol

_CONTINUED_LINES = re.compile(r"(?:[^\n]*\\[ \t\v\f]*\r?\n)+[^\n]*")
_DIGRAPHS = re.compile(r"^[ \t]*(?:#|%:).*", re.MULTILINE)
_OTHER_SPACES = str.maketrans("\f\v", "  ")  # the preprocessor does not know them
_NUMBER = re.compile(r"\.?\d(?:[eEpP][+-]|[\w.])*")
_PIECES = 16
"""Tokens that a number may be cut into."""


class Reader(Protocol):
    """A preprocessor of pcpp's, which has no types."""

    made: set[str]
    """Names of the macros that the source makes or ends."""

    def define(self, tokens: str) -> None: ...
    def undef(self, tokens: str) -> None: ...
    def add_path(self, path: str) -> None: ...
    def parse(self, source: str, name: str) -> None: ...
    def token(self) -> Token | None: ...


def new_reader() -> Reader:
    """Make a preprocessor that expands macros as OpenCL compilers do, and refuses what would not
    mean the same without it."""
    from pcpp import Preprocessor

    class Expanding(Preprocessor):  # type: ignore[misc]  # pcpp has no types
        def __init__(self) -> None:
            self.made: set[str] = set()
            super().__init__()
            self.expands = Expansion(self.macros, kinds_of(self.tokenize), self.tokenize)
            self.line_directive = None

        def on_error(self, file: str, line: int, message: str) -> None:
            raise CannotParse(f"preprocessing, line {line}: {message}")

        def on_unknown_macro_function_in_expr(self, name: str) -> NoReturn:
            raise CannotParse(f"preprocessing: a condition calls {name}")

        def on_directive_unknown(
            self, directive: Token, tokens: Sequence[Token], passing: bool, before: object
        ) -> bool | None:
            if directive.value == "error":
                raise CannotParse(f"line {directive.lineno}: #error is reached")
            if directive.value != "pragma":
                return True
            if tokens and tokens[0].value in ("unroll", "nounroll"):
                for token in tokens[1:]:  # a count may be a macro
                    expanded = self.expand_macros([copy.copy(token)])
                    token.value = "".join(part.value for part in expanded)
            return None

        def expand_macros(
            self, tokens: Sequence[Token], expanding_from: object = None
        ) -> list[Token]:
            found = self.expands.expanded(tokens)
            return [copy.copy(token) for token in found] if self.expands.in_condition else found

        def evalexpr(self, tokens: Sequence[Token]) -> object:
            self.expands.in_condition = True  # pcpp changes these tokens
            try:
                return super().evalexpr(tokens)
            finally:
                self.expands.in_condition = False

        def define(self, tokens: str | Sequence[Token]) -> None:
            self.made.update(token.value for token in tokens[:1] if not isinstance(token, str))
            super().define(tokens)

        def undef(self, tokens: str | Sequence[Token]) -> None:
            self.made.update(token.value for token in tokens[:1] if not isinstance(token, str))
            super().undef(tokens)

        def group_lines(self, text: str, *rest: object) -> Iterator[list[Token]]:
            lines = super().group_lines(_joined(text), *rest)
            return _numbered(_with_numbers(line) for line in lines)

        def tokenize(self, text: str) -> list[Token]:
            return _with_numbers(super().tokenize(text))

    return Expanding()


def _joined(text: str) -> str:
    """Join continued lines, as comments and directives need. Rewrite directives with digraphs as
    others."""
    text = _CONTINUED_LINES.sub(_one_line, text.translate(_OTHER_SPACES))
    return _DIGRAPHS.sub(lambda line: line[0].replace("%:", "#"), text)


def _one_line(lines: re.Match[str]) -> str:
    return re.sub(CONTINUED, "", lines[0]) + "\n" * lines[0].count("\n")


def _with_numbers(tokens: list[Token]) -> list[Token]:
    """Return tokens with the numbers that preprocessors know: `0_` is one, which pcpp cuts."""
    cut = [
        at
        for at in range(len(tokens) - 1)
        if (tokens[at].value[0].isdecimal() or tokens[at].value[0] == ".")
        and (tokens[at + 1].value[0].isalnum() or tokens[at + 1].value[0] in "_.")
    ]
    for at in reversed(cut):
        number = _NUMBER.match("".join(token.value for token in tokens[at : at + _PIECES]))
        length = end = 0
        while number and at + end < len(tokens) and length < number.end():
            length += len(tokens[at + end].value)
            end += 1
        if number and length == number.end():
            tokens[at].value = number[0]
            del tokens[at + 1 : at + end]
    return tokens


def _numbered(lines: Iterator[list[Token]]) -> Iterator[list[Token]]:
    """Return the lines of tokens, with the numbers of `#line`."""
    beyond = 0
    for line in lines:
        for token in line:
            token.lineno += beyond
        words = [token for token in line if token.value.strip()]
        if [token.value for token in words[:2]] == ["#", "line"] and len(words) > 2:
            if not words[2].value.isdecimal():
                raise CannotParse(f"line {line[0].lineno}: #line with a macro")
            beyond += int(words[2].value) - line[0].lineno - 1
        yield line
