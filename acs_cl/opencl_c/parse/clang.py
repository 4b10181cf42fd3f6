"""libclang, loaded at the first parse: from OpenCL C text to a syntax tree without errors.

Input: source, build options as PyOpenCL reports them, the facts of a device. Output: a `Unit`,
whose functions and kernels are found by name. Invariant: a unit has no error, and is read as the
device's compiler reads it. If that is not certain, `CannotParse` says why. A function without a
declaration is allowed: the tree has it as a call of an unknown function. Everything here, and every
walk over a unit, runs under `LOCK`, because the tree is not safe to share. Signals wait meanwhile:
ctypes would lose what a handler raises in a callback, and the walk would miss a part of the tree.
Where a source is long, the main thread looks for Ctrl-C between steps, and may begin anew.
"""

# Long because: the preparations of libclang for OpenCL C are one list.

from __future__ import annotations

import atexit
import ctypes
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TypeVar

import pyopencl as cl

from acs_cl import core
from acs_cl.devices.facts import (
    BuildOptions,
    CannotParse,
    bare,
    facts_of,
    split_options,
    without_trigraphs,
)
from acs_cl.opencl_c.parse import included as files
from acs_cl.opencl_c.parse import macros, names, overloads, prelude
from acs_cl.opencl_c.parse.environment import Environment
from acs_cl.opencl_c.parse.tree import Collect, Cursor, Index, Tree, TypeOf

from ...records import NamedTuple

__all__ = ["LOCK", "CannotParse", "Unit", "facts_of", "library", "parse", "split_options"]

Result = TypeVar("Result")

LOCK = core.native.Lock()
SOURCE_PATH = "/acs_cl_source.cl"
_PRELUDE_PATH = "/acs_cl_prelude.h"
_UNION, _FUNCTION, _STRING_LITERAL, _MACRO = 3, 8, 109, 501
"""Kinds of cursors, by libclang's numbers."""
_JOINED = (
    "union", "typeof", "__typeof", "__typeof__", "typeof_unqual", "__typeof_unqual",
    "__typeof_unqual__",
)  # fmt: skip
"""Words of the language that `_joined_words` looks for."""
_JOINS = re.compile(r"##|%:%:")

_HARMLESS = re.compile(r"-(cl-|nv-|ffast-math$|W(?!p,)|w$|O|g|s$|v$)")
"""Options that change the generated code, not the reading of the source."""

_OTHER_BODY = re.compile(r"\b(alias|ifunc|weakref|asm|__asm__)\(")
"""What gives a declaration the body of a function of another name, as the parser prints it."""
_GROUP_SIZE = re.compile(r"reqd_work_group_size\((\d+)[uUlL]*, (\d+)[uUlL]*, (\d+)[uUlL]*\)")

_UNDECLARED = re.compile(
    r"use of undeclared identifier '(\w+)'|implicit declaration of function '(\w+)'"
    r"|unknown type name '(\w+)'"
)


class Interrupted(BaseException):
    """Ends a reading of the main thread, since Ctrl-C waits."""


_begins_anew = False
"""Whether the main thread reads something that it may begin anew."""


def read(what: Callable[[], Result]) -> Result:
    """Read something by a function without other effects. If Ctrl-C comes, end that, let its
    handler run, and begin anew unless that raises. Other signals wait, since timers would have it
    begin for ever."""
    global _begins_anew
    if _begins_anew or not core.native.may_hear():
        return what()
    while True:
        _begins_anew = True
        try:
            return what()
        except Interrupted:
            pass
        finally:
            _begins_anew = False
        core.native.hear()


def look_for_interrupts() -> None:
    """Raise `Interrupted` if Ctrl-C waits for the end of a reading."""
    if _begins_anew and core.native.interrupt_waits():
        raise Interrupted


@dataclass(frozen=True, eq=False)
class Unit:
    """A parsed source. The tree lives as long as `tree` does."""

    tree: Tree
    source: str
    functions: dict[str, list[Cursor]]  # definitions only; overloaded names have several
    kernels: dict[str, Cursor]
    included: tuple[str, ...]  # files that the source includes
    has_unions: bool
    environment: Environment
    top: list[Cursor]  # all declarations at the top

    @cached_property
    def data(self) -> bytes:
        """Return the source as bytes, in which offsets count."""
        return self.source.encode("utf-8")

    @cached_property
    def ends(self) -> list[int]:
        """Return the ends of the declarations at the top of the source, in order."""
        extents = (cursor.extent for cursor in self.top)
        return sorted(one.end.offset for one in extents if str(one.end.file) == SOURCE_PATH)


class _Complaints(NamedTuple):
    """Complaints of the parser about a source."""

    errors: list[tuple[int, str]]
    undeclared: frozenset[str]
    undefined: frozenset[str]  # names that a condition reads as 0


class _Library(NamedTuple):
    cindex: ModuleType
    parser: Index
    collect: Collect
    type_of: TypeOf


_library: _Library | None = None
_predefined: dict[tuple[str, ...], frozenset[str]] = {}


def library() -> _Library:
    """Return the bindings, the parser, and functions that list a cursor's children and tell its
    type."""
    global _library
    with LOCK:
        if _library is None:
            try:
                from clang import cindex

                index = cindex.Index.create()
            except Exception as error:  # cindex raises its own kinds when the library is missing
                raise CannotParse(f"libclang does not load: {error}") from error
            lib = cindex.conf.lib
            for name in ("clang_getCursorBinaryOperatorKind", "clang_getCursorUnaryOperatorKind"):
                if not hasattr(lib, name):
                    raise CannotParse("libclang is older than version 17")
                getattr(lib, name).argtypes = [cindex.Cursor]
            lib.clang_Cursor_Evaluate.argtypes = [cindex.Cursor]
            lib.clang_Cursor_Evaluate.restype = ctypes.c_void_p
            for name in ("getKind", "getAsLongLong", "dispose"):
                getattr(lib, "clang_EvalResult_" + name).argtypes = [ctypes.c_void_p]
            lib.clang_EvalResult_getAsLongLong.restype = ctypes.c_longlong
            for name in ("clang_getCursorPrintingPolicy", "clang_getCursorPrettyPrinted"):
                getattr(lib, name).restype = (
                    ctypes.c_void_p if name.endswith("Policy") else cindex._CXString
                )
            lib.clang_getCursorPrintingPolicy.argtypes = [cindex.Cursor]
            lib.clang_PrintingPolicy_setProperty.argtypes = [
                ctypes.c_void_p, ctypes.c_int, ctypes.c_uint
            ]  # fmt: skip
            lib.clang_PrintingPolicy_dispose.argtypes = [ctypes.c_void_p]
            lib.clang_getCursorPrettyPrinted.argtypes = [cindex.Cursor, ctypes.c_void_p]
            _library = _Library(cindex, index, _child_collector(cindex), _type_teller(cindex))
            atexit.register(_leave_quietly, cindex)
        return _library


def _leave_quietly(cindex: ModuleType) -> None:
    # Trees that live to the end of the process would be freed after the globals of the bindings,
    # and complain. The process is ending, so nothing has to be freed.
    for kind in (cindex.TranslationUnit, cindex.Index):
        if "__del__" in vars(kind):
            del kind.__del__


def _type_teller(cindex: ModuleType) -> TypeOf:
    # cindex looks for the tree among the arguments of each call, which takes longer than the call.
    get_type = cindex.conf.lib["clang_getCursorType"]  # by item: see below
    get_type.argtypes = [cindex.Cursor]
    get_type.restype = cindex.Type

    def type_of(cursor: Cursor) -> int | None:
        return get_type(cursor).data[0]  # type: ignore[no-any-return]

    return type_of


def _child_collector(cindex: ModuleType) -> Collect:
    # cindex's own get_children makes a C callback for each call; one for all is three times as
    # fast.
    found: list[Cursor] = []

    def visit(child: Cursor, parent: Cursor, data: object) -> int:
        found.append(child)
        return 1  # go on with the next sibling

    prototype = ctypes.CFUNCTYPE(ctypes.c_int, cindex.Cursor, cindex.Cursor, ctypes.py_object)
    callback = prototype(visit)
    # Look up by item, not by attribute: this makes a new function object, and leaves cindex's types
    # as they are.
    visit_children = cindex.conf.lib["clang_visitChildren"]
    visit_children.argtypes = [cindex.Cursor, prototype, ctypes.py_object]

    def collect(cursor: Cursor) -> list[Cursor]:
        look_for_interrupts()
        found.clear()
        if visit_children(cursor, callback, None):  # something was raised in it, which ctypes lost
            raise RecursionError("no stack is left to read a source")
        children = found.copy()
        for child in children:
            child._tu = cursor._tu
        return children

    return collect


def parser_options(options: BuildOptions) -> list[str]:
    """Return the build options that change the reading of the text, in the parser's spelling."""
    out = [files.HERE]
    words = iter(split_options(options))
    for word in words:
        if word == "-include":
            out += [word, *itertools.islice(words, 1)]
        elif word.lower().startswith("-cl-std=clc++"):
            raise CannotParse(f"option {word}: C++ for OpenCL, not OpenCL C")
        elif word.startswith(("-D", "-I", "-U", "-cl-std=")) or word in (
            "-cl-single-precision-constant",
            "-cl-finite-math-only",
        ):
            out.append(word)
        elif word.startswith("-x") or word in ("-create-library",):
            raise CannotParse(f"option {word}: not OpenCL C source")
        elif word.startswith("-") and not _HARMLESS.match(word):
            raise CannotParse(f"option {word} may change how the source reads")
    return out


def parse(source: str, options: BuildOptions, device: cl.Device | None = None) -> Unit:
    """Parse one program source. Raises `CannotParse`."""
    with LOCK:
        words = parser_options(options)
        given = [word for word in words if word.startswith("-cl-std=")]
        words = [word for word in words if not word.startswith("-cl-std=")]
        environment = Environment(device, options)
        environment.ask(names.asked([source], words))
        failures: dict[str, CannotParse] = {}
        while True:
            left = [one for one in environment.standards(given) if one not in failures]
            if not left:
                raise next(iter(failures.values()))
            try:
                return _parse(environment, source, words, left[0])
            except CannotParse as failed:
                failures[left[0]] = failed


def _parse(environment: Environment, source: str, words: list[str], standard: str) -> Unit:
    """Parse again and again, until the driver has been asked for all that the source depends on,
    and its own functions that no header declares are declared."""
    included: tuple[str, ...] = ()
    texts = [source]
    undeclared: tuple[str, ...] = ()
    while True:
        tree, complaints = _tree(environment, source, words, standard, undeclared)
        found = tuple({str(entry.include.name) for entry in tree.get_includes()} - {_PRELUDE_PATH})
        if found != included:
            included, texts = found, [source, *files.read(found)]
        if environment.ask(names.asked(texts, words)):
            continue
        strange = complaints.undeclared | complaints.undefined
        if environment.stringizes:
            made = names.words_of(_made_strings(tree.cursor, "\n".join(texts)))
            strange |= {name for name in made if name.startswith(macros.UNKNOWN)}
            # with the text of constants, which OpenCL leaves to the driver
            constants = prelude.macros(prelude.text(environment.facts, frozenset()))
            made |= {name for name in constants if name[0].isupper()}
            if environment.ask(names.Asked(named=frozenset(made))):
                continue
        if environment.meet(strange):
            continue
        if not complaints.errors:
            break
        if environment.give_back(complaints.undeclared):
            continue
        calls = {n for n in complaints.undeclared if re.search(rf"\b{n}\s*\(", source)}
        if calls <= set(undeclared):
            raise CannotParse("line {}: {}".format(*complaints.errors[0]))
        undeclared = tuple(sorted(calls.union(undeclared)))
    files.refuse_ambiguous(included, words)
    return _unit(environment, source, tree, included, (*words, *texts))


def _unit(
    environment: Environment,
    source: str,
    tree: Tree,
    included: tuple[str, ...],
    texts: Sequence[str],
) -> Unit:
    """Collect the functions of a source, and refuse what its tree does not show. `texts`: options,
    the source, and what it includes."""
    said = [bare(one) for text in texts for one in {text, without_trigraphs(text)}]
    joined: set[str] = set()
    if any(_JOINS.search(text) for text in said):
        parts = names.words_of([*said, *environment.definitions()])
        if any(_can_be_joined(word, parts) for word in _JOINED):  # a large tree takes seconds
            joined = _joined_words(tree.cursor)
    if "typeof" in joined or any("typeof" in text for text in said):
        # The tree shows the type of an array parameter as an array, but it is a pointer.
        raise CannotParse("the source uses typeof")
    has_unions = "union" in joined or any(re.search(r"\bunion\b", text) for text in said)
    functions: dict[str, list[Cursor]] = {}
    kernels = {}
    top = library().collect(tree.cursor)
    for cursor in top:
        if cursor._kind_id != _FUNCTION:
            continue
        if cursor.is_definition():
            functions.setdefault(cursor.spelling, []).append(cursor)
            if is_kernel(cursor):
                kernels[cursor.spelling] = cursor
        elif not is_of_prelude(cursor) and _OTHER_BODY.search(declaration_text(cursor)):
            raise CannotParse(f"the body of {cursor.spelling} is that of another function")
    own = {one.spelling for one in top if one._kind_id == _FUNCTION and not is_of_prelude(one)}
    shared = overloads.of_builtins(own - kernels.keys(), parser := library().parser)
    collect = library().collect
    if shared and (name := overloads.unclear_call(tree.cursor, shared, collect, parser)):
        raise CannotParse(f"a call of {name} may mean the source's function or OpenCL's")
    return Unit(tree, source, functions, kernels, included, has_unions, environment, top)


def _can_be_joined(word: str, parts: set[str]) -> bool:
    """Tell whether a word can be made of two parts or more."""
    ends = [0]
    for end in range(1, len(word) + 1):
        if any(word[begin:end] in parts for begin in ends if end - begin < len(word)):
            ends.append(end)
    return ends[-1] == len(word)


def _joined_words(cursor: Cursor) -> set[str]:
    """Return which of `typeof` and `union` there are below a cursor: macros may join them of
    parts."""
    found: set[str] = set()
    for child in library().collect(cursor):
        found |= _joined_words(child)
        found |= {"union"} if child._kind_id == _UNION else set()
        found |= {"typeof"} if "typeof" in child.type.spelling else set()
    return found


def _made_strings(cursor: Cursor, text: str) -> Iterator[str]:
    """Return the strings below a cursor that macros made: the text does not have them."""
    for child in library().collect(cursor):
        if child._kind_id == _STRING_LITERAL and child.spelling not in text:
            yield child.spelling
        yield from _made_strings(child, text)


def _tree(
    environment: Environment, source: str, words: list[str], standard: str,
    undeclared: tuple[str, ...],
) -> tuple[Tree, _Complaints]:  # fmt: skip
    """Return a tree and its errors. `undeclared`: functions that the header declares."""
    cindex, index, *_ = library()
    facts = environment.facts
    target = f"spir{'64' if facts.address_bits == 64 else ''}-unknown-unknown"
    arguments = [
        "-x", "cl", standard, "-target", target, "-cl-no-stdinc", "-nostdinc",
        "-Xclang", "-fdeclare-opencl-builtins", "-Wundef", "-ferror-limit=0",
        "-ftrigraphs" if environment.macros.get(names.TRIGRAPHS) == "#" else "-fno-trigraphs",
        *words,
    ]  # fmt: skip
    predefined = _predefined_macros(index, standard, target)
    header = prelude.text(facts, predefined, undeclared, standard)
    lines = environment.definitions(prelude.macros(header))
    try:
        tree = index.parse(
            SOURCE_PATH,
            args=[*arguments, "-include", _PRELUDE_PATH],
            unsaved_files=[
                (SOURCE_PATH, source), (_PRELUDE_PATH, "\n".join([header, *lines, ""]))
            ],
        )  # fmt: skip
    except cindex.TranslationUnitLoadError as error:
        raise CannotParse(f"libclang: {error}") from error
    errors: list[tuple[int, str]] = []
    strange: tuple[set[str], set[str]] = set(), set()
    for entry in tree.diagnostics:
        text = entry.spelling
        if entry.severity >= 3:
            errors.append((entry.location.line, text))
            match = _UNDECLARED.search(text)
            if match:
                strange[0].add(match[1] or match[2] or match[3])
        elif text.endswith("is not defined, evaluates to 0"):
            strange[1].add(text.split("'")[1])
    return tree, _Complaints(errors, frozenset(strange[0]), frozenset(strange[1]))


def _predefined_macros(index: Index, standard: str, target: str) -> frozenset[str]:
    """Return the macros that the parser defines by itself."""
    key = (standard, target)
    if key not in _predefined:
        tree = index.parse(
            SOURCE_PATH,
            args=["-x", "cl", standard, "-target", target, "-cl-no-stdinc"],
            unsaved_files=[(SOURCE_PATH, "\n")],
            options=1,  # a detailed record of macros
        )
        _predefined[key] = frozenset(
            cursor.spelling for cursor in tree.cursor.get_children() if cursor._kind_id == _MACRO
        )
    return _predefined[key]


def is_kernel(cursor: Cursor) -> bool:
    """Tell whether a function definition is a kernel."""
    # Attributes are opaque in this tree. The printed declaration shows them with macros expanded.
    return re.search(r"\b(__)?kernel\b", declaration_text(cursor)) is not None


def declaration_text(cursor: Cursor) -> str:
    """Return a function's declaration with attributes, without body, macros expanded."""
    return printed(cursor, whole=False)


def required_group(kernel: Cursor) -> tuple[int, int, int] | None:
    """Return the group size that a kernel's declaration requires. None: it requires none."""
    match = _GROUP_SIZE.search(declaration_text(kernel))
    if match is None:
        return None
    x, y, z = map(int, match.groups())
    return x, y, z


def printed(cursor: Cursor, whole: bool = True) -> str:
    """Return a declaration as the parser prints it, macros expanded."""
    cindex = library().cindex
    lib = cindex.conf.lib
    policy = lib.clang_getCursorPrintingPolicy(cursor)
    try:
        lib.clang_PrintingPolicy_setProperty(policy, 17, not whole)  # terse: no body
        return str(cindex._CXString.from_result(lib.clang_getCursorPrettyPrinted(cursor, policy)))
    finally:
        lib.clang_PrintingPolicy_dispose(policy)


def is_of_prelude(cursor: Cursor) -> bool:
    """Tell whether a declaration comes from the header before every source."""
    where = cursor.location.file
    return where is None or where.name == _PRELUDE_PATH
