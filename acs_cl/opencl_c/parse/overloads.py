"""Functions of a source that have the name of a built-in one, and calls of them.

Input: names, or a tree. Output: the names that OpenCL C has, too, and a call that may mean either
function. Such a call takes the best of all functions of its name. The parser leaves its own out as
soon as a source declares one, and drivers do not: `min(n, 20)` may be the source's here and the
driver's there. Only where each argument has the very type of its parameter, it is the source's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from acs_cl.opencl_c.parse.tree import Collect, Cursor, Index, Type

_PATH = "/acs_cl_names.cl"
_OPTIONS = [
    "-x", "cl", "-cl-std=CL2.0", "-target", "spir64-unknown-unknown", "-cl-no-stdinc", "-nostdinc",
    "-Xclang", "-fdeclare-opencl-builtins", "-Xclang", "-cl-ext=+all", "-ferror-limit=0",
]  # fmt: skip
_OF_EXTENSIONS = re.compile(
    r"(intel_)?(sub|work)_group_|as_(u?(char|short|int|long)|half|float|double)\d*$"
    r"|atomic_(load|store|exchange|compare_exchange|fetch|flag|init)|get_\w*sub_group|printf$"
)
"""Names that the parser has only with the headers and features of a device."""

_known: dict[str, bool] = {}


def of_builtins(names: Iterable[str], parser: Index) -> set[str]:
    """Return those of these names that are built-in functions."""
    asked = set(names)
    new = sorted(asked - _known.keys())
    if new:
        uses = "\n".join(f"void acs_{at}(void) {{ (void){name}; }}" for at, name in enumerate(new))
        tree = parser.parse(_PATH, args=_OPTIONS, unsaved_files=[(_PATH, uses)])
        missing = {
            entry.spelling.split("'")[1]
            for entry in tree.diagnostics
            if entry.spelling.startswith("use of undeclared identifier")
        }
        _known.update({one: one not in missing or bool(_OF_EXTENSIONS.match(one)) for one in new})
    return {name for name in asked if _known[name]}


_CALL, _CONVERSION = 103, 100
_QUALIFIERS = re.compile(r"\b(const|volatile|restrict|__restrict|__private)\b")


def unclear_call(cursor: Cursor, names: set[str], collect: Collect) -> str:
    """Return the name of a function that is called below a cursor with arguments of other types.
    '': none of these is."""
    for child in collect(cursor):
        target = child.referenced if child._kind_id == _CALL else None
        if target is not None and target.spelling in names:
            given = collect(child)[1:]
            if any(_type(one.type) != _type(_bare(one, collect).type) for one in given):
                return target.spelling
        if found := unclear_call(child, names, collect):
            return found
    return ""


def _bare(argument: Cursor, collect: Collect) -> Cursor:
    """Return an argument before the call converts it."""
    while argument._kind_id == _CONVERSION and len(below := collect(argument)) == 1:
        argument = below[0]
    return argument


def _type(spelled: Type) -> str:
    """Return the text of a type without what does not matter in a call."""
    whole = spelled.get_canonical().spelling
    target, star, last = whole.rpartition("*")
    return f"{target}{star}{_QUALIFIERS.sub('', last)}".replace(" ", "")
