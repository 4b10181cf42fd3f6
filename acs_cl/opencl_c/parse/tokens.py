"""The tokens of a preprocessed text, and a text made from them with some changed.

In: OpenCL C without directives but pragmas. Out: tokens with their offsets, and from a set of
edits the edited text. Invariant: a token without an edit, and all space between tokens, comes out
as it stood; edits are kept by token, so that two of them at one place cannot cut each other.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"(?P<space>\s+|/\*.*?\*/|//[^\n]*)"
    r"|(?P<pragma>\#[^\n]*)"
    r"|(?P<name>[A-Za-z_$]\w*)"
    r"|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)"
    r"""|(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"|(?P<sign>->|.)",
    re.DOTALL,
)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")


class Token(NamedTuple):
    """One token; `at` is its byte offset."""

    kind: str  # "name", "number", "quoted", "sign" or "pragma"
    text: str
    at: int


def plain(text: str) -> str:
    """Write a text in ASCII, so that bytes are characters. A letter beyond it becomes the escapes
    of its bytes, which mean the same in strings, and nothing in comments."""
    return _BEYOND_ASCII.sub(_escapes, text)


def _escapes(letter: re.Match[str]) -> str:
    return "".join(f"\\{byte:03o}" for byte in letter[0].encode("utf-8"))


class Tokens:
    """The tokens of a text and the edits to it. Positions are indices of tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all: list[Token] = []
        self.index: dict[int, int] = {}  # position by byte offset
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup or ""
            if kind != "space":
                self.index[match.start()] = len(self.all)
                self.all.append(Token(kind, match.group(), match.start()))
        self.replaced: dict[int, str] = {}
        self.behind: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.all)

    def is_at(self, position: int, text: str) -> bool:
        """Whether the token there exists and reads so."""
        return 0 <= position < len(self.all) and self.all[position].text == text

    def closing(self, position: int) -> int:
        """The position of the bracket that closes the one at `position`."""
        depth = 0
        for at in range(position, len(self.all)):
            sign = self.all[at].text
            if sign in _OPEN:
                depth += 1
            elif sign in _CLOSE:
                depth -= 1
                if depth == 0:
                    return at
        return len(self.all) - 1

    def outer(self, begin: int, end: int) -> list[int]:
        """The positions from `begin` to `end` that no bracket encloses, brackets left out."""
        found, at = [], begin
        while at < end:
            if self.all[at].text in _OPEN:
                at = self.closing(at)
            else:
                found.append(at)
            at += 1
        return found

    def insert(self, position: int, text: str) -> None:
        """Put `text` behind the token at `position`, and behind what was inserted there before."""
        self.behind[position] = self.behind.get(position, "") + text

    def drop(self, begin: int, end: int) -> None:
        """Leave out the tokens from `begin` up to `end`."""
        for position in range(begin, end):
            self.replaced[position] = ""
            self.behind.pop(position, None)

    def render(self, begin: int, end: int) -> str:
        """The edited text of the tokens from `begin` up to `end`, with the space between them."""
        out = []
        for position in range(begin, end):
            token = self.all[position]
            if position > begin:
                last = self.all[position - 1]
                out.append(self.text[last.at + len(last.text) : token.at])
            out.append(self.replaced.get(position, token.text))
            out.append(self.behind.get(position, ""))
        return "".join(out)
