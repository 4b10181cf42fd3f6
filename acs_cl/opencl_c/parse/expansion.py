"""Expansion of macros, as clang does it.

Input: tokens of pcpp's, and its macros. Output: the tokens behind all expansions. pcpp finds lines,
directives and conditions; its own expansion reads a text once more for each macro around it, and
leaves some names as they are that others have made.

A macro stays closed while its own text is read. A name that is met there is never expanded again.
Arguments are expanded before they are put in, unless `#` or `##` takes them as they are written.

A token that an expansion must not run into, when it is written, `is_apart`.

Invariant: tokens that come in, or are parts of macros, are not changed. They may come out again.
"""

# Long because: reading arguments and putting them in are one sequence.

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence

from acs_cl.devices.facts import CannotParse

from ...records import NamedTuple, Protocol


class Token(Protocol):
    """A token of pcpp's, which has no types."""

    type: str
    value: str
    lineno: int


class Macro(Protocol):
    """A macro of pcpp's."""

    value: list[Token]
    arglist: list[str] | None
    """Its parameters. None: it has no brackets."""
    variadic: bool
    acs_parts: list[Part]
    """Its text in parts, once it was used."""


class Kinds(NamedTuple):
    """What pcpp's lexer calls its tokens."""

    name: str
    number: str
    string: str
    character: str
    paste: str
    skipped: frozenset[str]
    """Blanks and comments."""


def kinds_of(lexed: Callable[[str], list[Token]]) -> Kinds:
    """Return what a lexer calls its tokens."""

    def kind(text: str) -> str:
        (token,) = lexed(text)
        return token.type

    skipped = frozenset(map(kind, (" ", "\n", "/* */", "//")))
    return Kinds(
        kind("a"), kind("1"), kind('"a"'), kind("'a'"), kind("##"), skipped
    )  # fmt: skip


class Part(NamedTuple):
    """A part of a macro's text."""

    how: str
    """'token'; 'expanded', 'written' or 'string' of an argument; 'paste'; or 'rest': a comma and
    the last argument, unless that is empty."""
    argument: int
    token: Token


class _Frame:
    """Tokens that are being read. `name`: of the macro whose text they are."""

    __slots__ = "at", "name", "tokens"

    def __init__(self, tokens: Sequence[Token], name: str = "") -> None:
        self.tokens, self.name, self.at = tokens, name, 0


class Expansion:
    """Expands macros. `macros`: those that are defined at present. `lexed`: cuts a text into
    tokens."""

    def __init__(
        self, macros: Mapping[str, Macro], kinds: Kinds, lexed: Callable[[str], list[Token]]
    ) -> None:
        self._macros = macros
        self._kinds = kinds
        self._lexed = lexed
        self.in_condition = False
        """Whether the tokens are of a condition, which asks for the name behind `defined`."""
        self._counter = 0
        self._closed: set[str] = set()
        """Macros whose text is being read."""

    def expanded(self, tokens: Sequence[Token], line: int = 0) -> list[Token]:
        """Return tokens behind all expansions. `line`: where the macro stands whose argument they
        are."""
        kinds, macros, closed = self._kinds, self._macros, self._closed
        out: list[Token] = []
        frames = [_Frame(tokens)]
        here, is_behind = line, False  # behind an expansion
        is_asked = False
        while frames:
            frame = frames[-1]
            if frame.at == len(frame.tokens):
                frames.pop()
                closed.discard(frame.name)
                is_behind = is_behind or bool(frame.name)
                continue
            token = frame.tokens[frame.at]
            frame.at += 1
            if token.type != kinds.name:
                is_number = is_behind and token.value[0].isdecimal()
                out.append(self._made(token, is_apart=True) if is_number else token)
                is_behind = False
                continue
            if len(frames) == 1 and not line:
                here = token.lineno
            macro = None if is_asked else macros.get(token.value)
            is_asked = self.in_condition and token.value == "defined"
            if macro is not None and not hasattr(token, "is_final"):
                if token.value in closed:
                    token = self._made(token, is_final=True)
                elif macro.arglist is None:
                    self._open(frames, macro, [], token, here)
                    continue
                elif self._is_called(frames):
                    arguments = self._arguments(frames, macro, token)
                    self._open(frames, macro, arguments, token, here)
                    continue
            elif token.value == "__LINE__":
                token = self._made(token, type=kinds.number, value=str(here))
            elif token.value == "__COUNTER__":
                token = self._made(token, type=kinds.number, value=str(self._counter))
                self._counter += 1
            out.append(self._made(token, is_apart=True) if is_behind else token)
            is_behind = False
        return out

    def _open(
        self,
        frames: list[_Frame],
        macro: Macro,
        arguments: list[list[Token]],
        token: Token,
        line: int,
    ) -> None:
        """Read the text of a macro next."""
        frames.append(_Frame(self._text(macro, arguments, token, line), token.value))
        self._closed.add(token.value)

    @staticmethod
    def _made(token: Token, **attributes: object) -> Token:
        """Return a token with other attributes."""
        made = copy.copy(token)
        for name, value in attributes.items():
            setattr(made, name, value)
        return made

    # ---- arguments -----------------------------------------------------------------------------

    def _is_called(self, frames: Sequence[_Frame]) -> bool:
        """Tell whether a bracket comes next."""
        for frame in reversed(frames):
            for at in range(frame.at, len(frame.tokens)):
                if frame.tokens[at].type not in self._kinds.skipped:
                    return frame.tokens[at].value == "("
        return False

    def _arguments(self, frames: list[_Frame], macro: Macro, name: Token) -> list[list[Token]]:
        """Read the arguments of a macro. They may end behind the text of another one."""
        assert macro.arglist is not None
        many = len(macro.arglist)
        most = many if macro.variadic else -1
        found: list[list[Token]] = []
        depth = 0
        while True:
            while frames and frames[-1].at == len(frames[-1].tokens):
                self._closed.discard(frames.pop().name)
            if not frames:
                raise CannotParse(f"line {name.lineno}: the arguments of {name.value} do not end")
            token = frames[-1].tokens[frames[-1].at]
            frames[-1].at += 1
            depth += (token.value == "(") - (token.value == ")")
            if not depth:
                if found:
                    break
                continue  # a blank in front of the bracket
            if not found or (token.value == "," and depth == 1 and len(found) != most):
                found.append([])
            else:
                found[-1].append(token)
        found = [self._stripped(one) for one in found]
        if found == [[]] and not many:
            return []
        if macro.variadic and len(found) == many - 1:
            found.append([])
        if len(found) != many:
            raise CannotParse(
                f"line {name.lineno}: {name.value} takes {many} arguments, got {len(found)}"
            )
        return found

    def _stripped(self, tokens: list[Token]) -> list[Token]:
        """Return tokens without blanks at both ends."""
        first, last = 0, len(tokens)
        while first < last and tokens[first].type in self._kinds.skipped:
            first += 1
        while first < last and tokens[last - 1].type in self._kinds.skipped:
            last -= 1
        return tokens[first:last]

    # ---- the text of a macro -------------------------------------------------------------------

    def _text(
        self, macro: Macro, arguments: list[list[Token]], name: Token, line: int
    ) -> list[Token]:
        """Return the text of a macro with these arguments."""
        text: list[Token] = []
        expanded: dict[int, list[Token]] = {}
        is_empty, pastes = True, False  # what a `##` has in front of it, and whether there is one
        for part in self._parts(macro):
            if part.how == "paste":
                pastes = True
                continue
            piece: list[Token]
            if part.how == "token":
                piece = [part.token]
            elif part.how == "expanded":
                if part.argument not in expanded:
                    found = self.expanded(arguments[part.argument], line or name.lineno)
                    expanded[part.argument] = found
                piece = expanded[part.argument]
            elif part.how == "string":
                piece = [self._string(part.token, arguments[part.argument])]
            elif part.how == "rest":
                rest = arguments[part.argument]
                piece = [part.token, *rest] if rest else []
            else:
                piece = arguments[part.argument]
            if pastes and not is_empty and piece:
                text[-1:] = self._pasted(text[-1], piece[0])
                text += piece[1:]
            else:
                text += piece
            is_empty = not piece and (is_empty or not pastes)
            pastes = False
        return text

    def _parts(self, macro: Macro) -> list[Part]:
        """Return the parts of a macro's text. They stay with the macro."""
        known: list[Part] | None = getattr(macro, "acs_parts", None)
        if known is not None:
            return known
        parts: list[Part] = []
        roles = {at: (kind, number) for kind, number, at in getattr(macro, "patch", ())}
        roles |= {at: ("s", number) for number, at in getattr(macro, "str_patch", ())}
        commas = set(getattr(macro, "var_comma_patch", ()))
        hows = {"e": "expanded", "t": "written", "s": "string"}
        at = 0
        while at < len(macro.value):
            token = macro.value[at]
            is_pasted = bool(parts) and parts[-1].how == "paste"
            if token.type == self._kinds.paste:
                while parts and parts[-1].how == "token" and self._is_blank(parts[-1].token):
                    parts.pop()
                if parts and not is_pasted:
                    parts.append(Part("paste", 0, token))
            elif at in commas:
                parts.append(Part("rest", len(macro.arglist or ()) - 1, token))
                at += 2
            elif at in roles:
                kind, number = roles[at]
                parts.append(Part(hows[kind], number, token))
            elif not (is_pasted and self._is_blank(token)):
                parts.append(Part("token", 0, token))
            at += 1
        macro.acs_parts = parts
        return parts

    def _is_blank(self, token: Token) -> bool:
        return token.type in self._kinds.skipped

    def _string(self, made_of: Token, argument: Sequence[Token]) -> Token:
        """Return an argument as a string."""
        text, kinds = "", self._kinds
        for token in argument:
            if token.type in kinds.skipped:
                text += "" if text.endswith(" ") else " "
            elif token.type in (kinds.string, kinds.character):
                text += token.value.replace("\\", "\\\\").replace('"', '\\"')
            else:
                text += token.value
        return self._made(made_of, type=kinds.string, value=f'"{text}"')

    def _pasted(self, left: Token, right: Token) -> list[Token]:
        """Return what two tokens are when they are one."""
        text = left.value + right.value
        found = self._lexed(text)
        if text[0].isdigit():  # pcpp cuts some numbers in two
            found = [self._made(found[0], value=text)]
        return [self._made(one, lineno=left.lineno) for one in found]
