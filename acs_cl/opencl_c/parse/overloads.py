"""Functions of a source that have the name of a built-in one, and calls of them.

Input: names, or a tree. Output: the names that OpenCL C has, too, and a call that may mean either
function. Such a call takes the best of all functions of its name. The parser leaves its own out as
soon as a source declares one, and drivers do not: `min(n, 20)` may be the source's here and the
driver's there. It is the source's only where each argument has the very type of its parameter, or
where no built-in function takes such arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from acs_cl.opencl_c.parse.tree import Collect, Cursor, Index, Type

_PATH = "/acs_cl_names.cl"
_OPTIONS = [
    "-x", "cl", "-cl-std=CL3.0", "-target", "spir64-unknown-unknown", "-cl-no-stdinc", "-nostdinc",
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


_CALL, _CONVERSION, _POINTER, _RECORD = 103, 100, 101, 105
_INTEGERS = frozenset(range(3, 21))
_QUALIFIERS = re.compile(r"\b(const|volatile|restrict|__restrict|__private)\b")
_IN_SPACE = re.compile(r"__(global|local|constant)\b.*\*$")
_RECORD_NAME = re.compile(r"\b(struct|union) (\(.*?\)|\w+)")

_taken: dict[tuple[str, ...], bool] = {}


def unclear_call(cursor: Cursor, names: set[str], collect: Collect, parser: Index) -> str:
    """Return the name of a function that is called below a cursor with arguments of other types,
    which a built-in function may take. '': none of these is."""
    for child in collect(cursor):
        target = child.referenced if child._kind_id == _CALL else None
        if target is not None and target.spelling in names:
            given = collect(child)[1:]
            bare = [_bare(one, collect).type for one in given]
            is_exact = all(
                _type(one.type) == _type(own) for one, own in zip(given, bare, strict=True)
            )
            if not is_exact and _may_take(target.spelling, bare, parser):
                return target.spelling
        if found := unclear_call(child, names, collect, parser):
            return found
    return ""


def _may_take(name: str, given: Sequence[Type], parser: Index) -> bool:
    """Tell whether a built-in function of this name may take arguments of these types."""
    types = [one.get_canonical() for one in given]
    if any(one._kind_id == _RECORD for one in types):
        return False
    spelled = [_for_probe(one) for one in types]
    key = name, *spelled
    if key not in _taken:
        parameters = ", ".join(f"{one} x{at}" for at, one in enumerate(spelled) if one) or "void"
        call = ", ".join(f"x{at}" if one else "0" for at, one in enumerate(spelled))
        text = f"void acs({parameters}) {{ {name}({call}); }}"
        tree = parser.parse(_PATH, args=_OPTIONS, unsaved_files=[(_PATH, text)])
        errors = [entry.spelling for entry in tree.diagnostics if entry.severity > 2]
        refused = [one.startswith("no matching function") for one in errors]
        _taken[key] = not (refused and all(refused))
    return _taken[key]


def _for_probe(canonical: Type) -> str:
    """Return the type that stands for another one where a built-in function is tried. It converts
    to at least as much. '': a 0 does, which may be a null pointer of any kind."""
    spelling = _unqualified(canonical)
    is_pointer = canonical._kind_id == _POINTER
    if canonical._kind_id in _INTEGERS or (is_pointer and not _IN_SPACE.search(spelling)):
        return ""
    return _RECORD_NAME.sub("void", spelling)


def _bare(argument: Cursor, collect: Collect) -> Cursor:
    """Return an argument before the call converts it."""
    while argument._kind_id == _CONVERSION and len(below := collect(argument)) == 1:
        argument = below[0]
    return argument


def _type(spelled: Type) -> str:
    """Return the text of a type without what does not matter in a call."""
    return _unqualified(spelled.get_canonical()).replace(" ", "")


def _unqualified(canonical: Type) -> str:
    """Return the text of a type without what qualifies the value itself."""
    target, star, last = canonical.spelling.rpartition("*")
    return f"{target}{star}{_QUALIFIERS.sub('', last)}".strip()
