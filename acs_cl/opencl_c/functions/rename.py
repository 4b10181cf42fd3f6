"""Names of a program get a prefix, calls get a context, words of kernels go: edits by token.

In: the tokens and the survey of a source. Out: edits in the tokens. Invariant: a name of the
program reads the same everywhere, also where an inner declaration hides it, so what it means stays
as it was; only names behind `.` and `->`, names of fields, names of attributes and built-in
functions keep their spelling.
"""

from __future__ import annotations

from collections.abc import Iterator

from acs_cl.opencl_c.functions.survey import Survey
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


def rename(tokens: Tokens, survey: Survey, prefix: str) -> None:
    """Put the prefix before every name of the program; leave out `restrict`."""
    # A pointer that is const and restrict may be read through caches that do not see what another
    # task of the same launch wrote.
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
    return tokens.is_at(position - 1, ".") or tokens.is_at(position - 1, "->")


def give_context(tokens: Tokens, survey: Survey, context: set[str], arena: set[str]) -> None:
    """Declarations and calls of the functions in `context` and `arena` get what these need."""
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
    """What a function is given before its own arguments, as parameters or as arguments."""
    first = "ACS_CONTEXT" if declared else "ACS_PASS"
    second = "__local uchar *acs_arena" if declared else "acs_arena"
    return ", ".join(
        [first] * (name in context) + [second] * (name in arena),
    )


def _add_first(tokens: Tokens, bracket: int, words: str) -> None:
    tokens.insert(bracket, words if tokens.is_at(bracket + 1, ")") else f"{words}, ")


def chunks(tokens: Tokens, ends: set[int]) -> Iterator[tuple[int, int]]:
    """The declarations at the top of the text; `ends` are the offsets where functions end."""
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


def read_globally(tokens: Tokens, begin: int, end: int, kept: list[tuple[int, int]]) -> None:
    """Pointers to `__constant` memory in a function become pointers to `const __global` memory.

    `kept` are the declarations of variables that lie in constant memory themselves, in bytes.
    """
    for position in range(begin, end):
        token = tokens.all[position]
        if token.text in ("constant", "__constant") and not any(
            first <= token.at < last for first, last in kept
        ):
            tokens.replaced[position] = "__global const"


def make_function(tokens: Tokens, begin: int, end: int, kernel: bool) -> str:
    """The words before a function that others in the text may call; a kernel becomes one, too."""
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
