"""The tokens of a preprocessed text, and the text with some of them edited.

Input: OpenCL C without directives except pragmas. Output: tokens with their offsets, and the edited
text. Invariant: tokens without an edit, and all space between tokens, stay the same. Edits are kept
by token, so two edits at one place cannot cut each other.
"""

from __future__ import annotations

import re

from ...records import NamedTuple

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
    """Return a text in ASCII, so that bytes are characters. Another letter becomes the escapes of
    its bytes, which mean the same in strings, and nothing in comments."""
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
        """Tell whether the token at a position exists and has this text."""
        return 0 <= position < len(self.all) and self.all[position].text == text

    def closing(self, position: int) -> int:
        """Return the position of the bracket that closes the one at `position`."""
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
        """Return the positions from `begin` to `end` outside of brackets, without the brackets."""
        found, at = [], begin
        while at < end:
            if self.all[at].text in _OPEN:
                at = self.closing(at)
            else:
                found.append(at)
            at += 1
        return found

    def insert(self, position: int, text: str) -> None:
        """Insert `text` behind the token at `position`, and behind earlier insertions there."""
        self.behind[position] = self.behind.get(position, "") + text

    def drop(self, begin: int, end: int) -> None:
        """Leave out the tokens from `begin` up to `end`."""
        for position in range(begin, end):
            self.replaced[position] = ""
            self.behind.pop(position, None)

    def render(self, begin: int, end: int) -> str:
        """Return the edited text from `begin` up to `end`, with the space between tokens."""
        out = []
        for position in range(begin, end):
            token = self.all[position]
            if position > begin:
                last = self.all[position - 1]
                out.append(self.text[last.at + len(last.text) : token.at])
            out.append(self.replaced.get(position, token.text))
            out.append(self.behind.get(position, ""))
        return "".join(out)
