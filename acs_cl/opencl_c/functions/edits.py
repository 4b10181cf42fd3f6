"""Edits by token: the words of a kernel become those of a function.

Input: the tokens and the survey of a source. Output: edits in the tokens. Names of the program get
a prefix, calls get a context, words of kernels go. Variables that are only allowed in kernels move
out. `__local` ones move into an arena that the caller brings. The name becomes a pointer to the
variable's type, set to a place in the arena, and every use dereferences it. So `sizeof`, `&` and
arrays of arrays keep their meaning. `__constant` ones move out to the program.

Invariants: a name of the program is the same everywhere, even where an inner declaration hides it,
so meanings do not change. Only names behind `.` and `->`, names of fields, names of attributes and
built-in functions keep their spelling. No two variables of a kernel share a byte of the arena, nor
do those of it and of the kernels that it calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from acs_cl.opencl_c.functions.survey import About, Survey, Variable
from acs_cl.opencl_c.parse.tokens import Tokens

IDENTITY = frozenset(
    f"get_{what}"
    for what in (
        "global_id", "local_id", "group_id", "global_size", "local_size", "enqueued_local_size",
        "num_groups", "global_offset", "work_dim", "global_linear_id", "local_linear_id",
    )
)  # fmt: skip
_KERNEL = ("kernel", "__kernel")
_ATTRIBUTE = ("__attribute__", "__attribute")
_RESTRICT = ("restrict", "__restrict", "__restrict__")
_ALIGNMENT = 128  # of arenas, the most that a type of OpenCL C asks for
_ALIGNED = re.compile(r"^\d+$")


def rename(tokens: Tokens, survey: Survey, prefix: str) -> None:
    """Put the prefix before every name of the program; leave out `restrict`."""
    # A const restrict pointer may be read through caches, which do not see the writes of other
    # tasks of the same launch.
    kept = survey.fields | survey.foreign
    attributes = _attribute_names(tokens)
    for position, token in enumerate(tokens.all):
        if token.kind != "name":
            continue
        if token.text in _RESTRICT:
            tokens.replaced[position] = ""
        elif (
            token.text in survey.names
            and token.at not in kept
            and position not in attributes
            and not _is_member(tokens, position)
        ):
            tokens.replaced[position] = prefix + token.text


def _attribute_names(tokens: Tokens) -> set[int]:
    found: set[int] = set()
    for position, token in enumerate(tokens.all):
        if token.text in _ATTRIBUTE and tokens.is_at(position + 2, "("):
            found.update(tokens.outer(position + 3, tokens.closing(position + 2)))
    return found


def _is_member(tokens: Tokens, position: int) -> bool:
    is_range = tokens.is_at(position - 2, ".")  # the last dot of `case A ... B:`
    return tokens.is_at(position - 1, "->") or (tokens.is_at(position - 1, ".") and not is_range)


def give_context(tokens: Tokens, survey: Survey, context: set[str], arena: set[str]) -> None:
    """Add context and arena to declarations and calls of the functions that need them."""
    for position, token in enumerate(tokens.all):
        if token.kind != "name" or _is_member(tokens, position) or token.at in survey.fields:
            continue
        name = token.text
        if not tokens.is_at(position + 1, "("):  # a variable of that name
            continue
        if name in IDENTITY and name not in survey.names:
            tokens.replaced[position] = f"acs_{name}"
            _add_first(tokens, position + 1, "ACS_PASS")
        elif name in context | arena and token.at not in survey.foreign:
            declared = survey.declared.get(token.at) == name
            if declared and tokens.is_at(position + 2, "void") and tokens.is_at(position + 3, ")"):
                tokens.replaced[position + 2] = ""
                tokens.insert(position + 1, words_for(name, context, arena, declared))
            else:
                _add_first(tokens, position + 1, words_for(name, context, arena, declared))


def words_for(name: str, context: set[str], arena: set[str], declared: bool) -> str:
    """Return the words before a function's own arguments, as parameters or as arguments."""
    first = "ACS_CONTEXT" if declared else "ACS_PASS"
    second = "__local uchar *acs_arena" if declared else "acs_arena"
    return ", ".join(
        [first] * (name in context) + [second] * (name in arena),
    )


def _add_first(tokens: Tokens, bracket: int, words: str) -> None:
    tokens.insert(bracket, words if tokens.is_at(bracket + 1, ")") else f"{words}, ")


def chunks(tokens: Tokens, ends: set[int]) -> Iterator[tuple[int, int]]:
    """Return the declarations at the top of the text. `ends`: the offsets where functions end."""
    begin = at = 0
    while at < len(tokens):
        token = tokens.all[at]
        if token.kind == "pragma" and at == begin:
            at += 1
            yield begin, at
            begin = at
            continue
        if token.text in "([{":
            at = tokens.closing(at)
        at += 1
        last = tokens.all[at - 1]
        if last.text == ";" or (last.text == "}" and last.at + 1 in ends):
            yield begin, at
            begin = at
    if begin < at:
        yield begin, at


def pragmas(tokens: Tokens) -> list[str]:
    """Return the text of each pragma outside of functions, where it holds for all that follows."""
    found = []
    for position in tokens.outer(0, len(tokens)):
        token = tokens.all[position]
        if token.kind == "pragma":
            found.append(re.sub(r"#\s*(pragma)?\s*", "", token.text, count=1))
        elif token.text == "_Pragma" and tokens.is_at(position + 1, "("):
            inside = tokens.all[position + 2 : tokens.closing(position + 1)]
            found.append("".join(part.text for part in inside).strip('"').strip())
    return found


def read_globally(tokens: Tokens, begin: int, end: int, kept: list[tuple[int, int]]) -> None:
    """Turn pointers to `__constant` memory in a function into pointers to `const __global` memory.
    `kept`: byte ranges of declarations of variables that are in constant memory themselves."""
    for position in range(begin, end):
        token = tokens.all[position]
        if token.text in ("constant", "__constant") and not any(
            first <= token.at < last for first, last in kept
        ):
            tokens.replaced[position] = "__global const"


def make_function(tokens: Tokens, begin: int, end: int, kernel: bool) -> str:
    """Return the words before a function that other code may call. A kernel becomes one, too."""
    words = "static "
    for position in tokens.outer(begin, end):
        text = tokens.all[position].text
        if text == "static":
            words = ""
        elif text == "extern" or text in _KERNEL:
            tokens.replaced[position] = ""
        elif (text in _ATTRIBUTE and kernel) or text == "__kernel_exec":
            tokens.drop(position, tokens.closing(position + 1) + 1)
    return words


def hoist_locals(tokens: Tokens, about: About, start: int) -> int:
    """Move the `__local` variables into the arena, from byte `start` on; return their end."""
    end = start
    for variable in about.locals.values():
        position = tokens.index[variable.at]
        last = _end_of_declarator(tokens, position)
        alignment = max(variable.alignment, _asked_alignment(tokens, variable))
        at = -(-end // alignment) * alignment
        end = at + variable.bytes
        pointer = f"(*acs_l_{variable.name})"
        tokens.replaced[position] = pointer
        tokens.insert(last, f" = (__local void *)(acs_arena + {at})")
        for use in variable.uses:
            tokens.replaced[tokens.index[use]] = pointer
    return end


def _end_of_declarator(tokens: Tokens, position: int) -> int:
    """Return the position of the last token of a declarator."""
    at = position
    while not (tokens.is_at(at + 1, ",") or tokens.is_at(at + 1, ";")):
        at += 1
        if tokens.all[at].text in "([{":
            at = tokens.closing(at)
    return at


def _statement(tokens: Tokens, variable: Variable) -> tuple[int, int]:
    """Return the first position of a variable's declaration, and the one behind its end."""
    begin, end = variable.statement
    return tokens.index[begin], tokens.index[end - 1] + 1


def _asked_alignment(tokens: Tokens, variable: Variable) -> int:
    """Return the alignment that attributes of the declaration ask for."""
    asked = 1
    for at in range(*_statement(tokens, variable)):
        if tokens.all[at].text in ("aligned", "__aligned__"):
            number = tokens.all[at + 2].text if tokens.is_at(at + 1, "(") else ""
            asked = max(asked, int(number) if _ALIGNED.match(number) else _ALIGNMENT)
    return asked


def hoist_constants(tokens: Tokens, about: About, prefix: str) -> str:
    """Move the `__constant` variables out; return the text to put before the function."""
    moved: set[tuple[int, int]] = set()
    for variable in about.constants.values():
        name = f"{prefix}acs_c_{about.name}_{variable.name}"
        for at in (variable.at, *variable.uses):
            tokens.replaced[tokens.index[at]] = name
        moved.add(_statement(tokens, variable))
    text = ""
    for begin, end in sorted(moved):
        text += tokens.render(begin, end) + "\n"
    for begin, end in moved:
        tokens.drop(begin, end)
    return text
