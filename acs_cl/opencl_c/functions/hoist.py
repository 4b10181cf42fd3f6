"""Move variables out of a kernel that are only allowed in kernels, so that it can be a function.

Input: tokens, and the survey of one kernel. Output: edits, and the text to put before the function.
`__local` variables move into an arena that the caller brings. The name becomes a pointer to the
variable's type, set to a place in the arena, and every use dereferences it. So `sizeof`, `&` and
arrays of arrays keep their meaning. `__constant` variables move out to the program. Invariant: no
two variables of a kernel share a byte of the arena, nor do those of a kernel and of one that it
calls.
"""

from __future__ import annotations

import re

from acs_cl.opencl_c.functions.survey import About, Variable
from acs_cl.opencl_c.parse.tokens import Tokens

ALIGNMENT = 128  # of arenas, the most that a type of OpenCL C asks for
_ALIGNED = re.compile(r"^\d+$")


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
            asked = max(asked, int(number) if _ALIGNED.match(number) else ALIGNMENT)
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
