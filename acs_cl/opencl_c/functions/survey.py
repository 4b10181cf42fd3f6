"""Survey of a preprocessed source, for its translation into functions.

Input: a parsed unit. Output: a `Survey`. It has the names of the program, and its functions with
their calls and, if one cannot be translated, the reason. It also has byte offsets of places that a
token alone does not tell apart. Invariant: an offset is that of a name in the text, also inside
arguments of macros that only the device's compiler knows.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable

from acs_cl.opencl_c.parse import clang
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.tree import Cursor, Type

from ...records import NamedTuple

_FIELD_DECL, _ENUM_CONSTANT_DECL = 6, 7
_RECORDS = (n.STRUCT_DECL, n.UNION_DECL, n.ENUM_DECL)
_IMAGES, _PIPE, _SAMPLER, _QUEUES = range(121, 157), 120, 157, (159, 160)

# What a call of a built-in function means for its kernel; the first match counts.
_REFUSED = [
    (re.compile(r"(intel_)?sub_group_|get_(enqueued_)?(max_|num_)?sub_group"), "uses sub-groups"),
    (re.compile(r"enqueue_|get_default_queue|ndrange_|get_kernel_"), "enqueues kernels itself"),
    (re.compile(r"printf$"), "prints"),
    (re.compile(r"(read|write)_image|get_image_"), "uses images"),
    (re.compile(r"\w*_pipe(_|$)|get_pipe_"), "uses pipes"),
]


class Variable(NamedTuple):
    """A variable of a kernel that is not private: its declaration and its uses."""

    name: str
    at: int
    uses: list[int]
    statement: tuple[int, int]  # from the first byte of the whole declaration to behind its end
    bytes: int
    alignment: int


class About:
    """Facts about the functions of one name."""

    def __init__(self, definition: Cursor) -> None:
        self.name = definition.spelling
        self.definition = definition
        self.kernel = False
        self.definitions = 0  # overloaded functions have several
        self.calls: set[str] = set()  # functions of the source
        self.builtins: set[str] = set()  # all others
        self.reason = ""
        self.locals: dict[int, Variable] = {}  # by identity of the declaration
        self.constants: dict[int, Variable] = {}

    def refuse(self, reason: str) -> None:
        """Note why it cannot be translated; the first reason counts."""
        self.reason = self.reason or reason


class Survey:
    """Facts about a source."""

    def __init__(self, unit: clang.Unit) -> None:
        self.names: set[str] = set()  # declared at the top of the program
        self.functions: dict[str, About] = {}
        self.declared: dict[int, str] = {}  # where functions are declared, and their names
        self.ends: set[int] = set()  # where their bodies end
        self.fields: set[int] = set()  # where fields are declared
        self.foreign: set[int] = set()  # names of the program that mean a built-in function here
        self.unsuitable: set[int] = set()  # variables of the program that no function can use
        self._statement = (0, 0)  # the declaration that the walk is in
        self._body = (0, 0)  # the function that it is in
        self._collect = clang.library().collect
        self._offset = _offset_reader()
        top = [cursor for cursor in self._collect(unit.tree.cursor) if _is_of_source(cursor)]
        for cursor in top:
            if cursor._kind_id == n.FUNCTION_DECL and cursor.is_definition():
                about = self.functions.setdefault(cursor.spelling, About(cursor))
                about.definition = cursor
                about.definitions += 1
                about.kernel = cursor.spelling in unit.kernels
                self.names.add(cursor.spelling)
                self.ends.add(cursor.extent.end.offset)
        for cursor in top:
            self._declaration(cursor)

    def _declaration(self, cursor: Cursor) -> None:
        kind = cursor._kind_id
        if kind == n.FUNCTION_DECL:
            self.declared[self._offset(cursor)] = cursor.spelling
            if cursor.is_definition():
                about = self.functions[cursor.spelling]
                self._body = cursor.extent.start.offset, cursor.extent.end.offset
                for child in self._collect(cursor):
                    self._below(child, about)
        elif kind == n.VAR_DECL:
            self.names.add(cursor.spelling)
            if is_opaque(cursor.type) or not _is_fixed(cursor.type):
                self.unsuitable.add(self._offset(cursor))
            self._types(cursor)
        elif kind == n.TYPEDEF_DECL:
            self.names.add(cursor.spelling)
            self._types(cursor)
        elif kind in _RECORDS:
            self._record(cursor)

    def _types(self, cursor: Cursor) -> None:
        for child in self._collect(cursor):
            if child._kind_id in _RECORDS:
                self._record(child)
            else:
                self._types(child)

    def _record(self, cursor: Cursor) -> None:
        """Note a structure, union or enumeration of the program, with its members."""
        if cursor.spelling.isidentifier():
            self.names.add(cursor.spelling)
        for child in self._collect(cursor):
            if child._kind_id == _FIELD_DECL:
                self.fields.add(self._offset(child))
                self._types(child)
            elif child._kind_id == _ENUM_CONSTANT_DECL:
                self.names.add(child.spelling)
            elif child._kind_id in _RECORDS:
                self._record(child)

    # ---- inside of functions ----

    def _below(self, cursor: Cursor, about: About) -> None:
        kind = cursor._kind_id
        if kind == n.DECL_REF_EXPR:
            self._reference(cursor, about)
        elif kind == n.DECL_STMT:
            self._statement = cursor.extent.start.offset, cursor.extent.end.offset
        elif kind in (n.PARM_DECL, n.VAR_DECL):
            self._variable(cursor, about)
        elif kind == n.FUNCTION_DECL:
            self.declared[self._offset(cursor)] = cursor.spelling
        elif kind == _FIELD_DECL:
            self.fields.add(self._offset(cursor))
        elif kind in (n.GCC_ASM_STMT, n.MS_ASM_STMT):
            about.refuse("has inline assembly, which may ask who the work-item is")
        elif kind == n.BLOCK_EXPR:
            about.refuse("has blocks")
        for child in self._collect(cursor):
            self._below(child, about)

    def _reference(self, cursor: Cursor, about: About) -> None:
        target = cursor.referenced
        if target is None:
            return
        name = target.spelling
        if target._kind_id == n.FUNCTION_DECL:
            if name in self.functions and _is_of_source(target):
                about.calls.add(name)
                return
            about.builtins.add(name)
            self.foreign.add(self._offset(cursor))
            for pattern, reason in _REFUSED:
                if pattern.match(name):
                    about.refuse(reason)
            if _is_undeclared(target):
                about.refuse(f"calls {name}, which nobody declares")
        elif target._kind_id == n.VAR_DECL:
            key = n.identity(target.canonical)
            variable = about.locals.get(key) or about.constants.get(key)
            if variable is not None:
                variable.uses.append(self._offset(cursor))
            elif self._offset(target.canonical) in self.unsuitable:
                what = "sampler" if is_opaque(target.type) else "writable variable"
                about.refuse(f"uses the program's {what} {name}")

    def _variable(self, cursor: Cursor, about: About) -> None:
        spelled = cursor.type
        if is_opaque(spelled):
            about.refuse(f"uses images, samplers, pipes or queues ({cursor.spelling})")
        if cursor._kind_id == n.PARM_DECL:
            return
        space = spelled.get_canonical().get_address_space()
        key = n.identity(cursor.canonical)
        variable = Variable(
            cursor.spelling, self._offset(cursor), [], self._statement, spelled.get_size(),
            spelled.get_align(),
        )  # fmt: skip
        if space in (n.LOCAL, n.CONSTANT) and variable.bytes <= 0:
            about.refuse(f"the parser gives no size for the variable {cursor.spelling}")
        if space == n.LOCAL:
            about.locals[key] = variable
        elif space == n.CONSTANT:
            about.constants[key] = variable
            if inner := self._inner_name(cursor, about):
                about.refuse(f"its constant {cursor.spelling} needs {inner}, declared inside of it")
        elif space == n.GLOBAL and not _is_fixed(spelled):
            about.refuse(f"keeps the variable {cursor.spelling} from launch to launch")

    def _inner_name(self, cursor: Cursor, about: About) -> str:
        """Return a name in a declaration that means something of the function around it. Outside of
        that it may mean something else. '': there is none."""
        first, last = self._body
        for child in self._collect(cursor):
            target = child.referenced
            if target is not None and _is_of_source(target):
                at = self._offset(target)
                begin, end = self._statement
                if (
                    first <= at < last
                    and not begin <= at < end
                    and n.identity(target.canonical) not in about.constants
                ):
                    return str(target.spelling)
            if found := self._inner_name(child, about):
                return found
        return ""


def _is_of_source(cursor: Cursor) -> bool:
    where = cursor.location.file
    return where is not None and where.name == clang.SOURCE_PATH


def _is_undeclared(function: Cursor) -> bool:
    """Tell whether a function has no declaration, only calls."""
    return function.location.file is not None and not _is_of_source(function)


def is_opaque(spelled: Type) -> bool:
    """Tell whether values of a type are handles: images, samplers, pipes, queues."""
    canonical = spelled.get_canonical()
    while canonical._kind_id in (112, 113, 114, 115):
        canonical = canonical.get_array_element_type().get_canonical()
    kind = canonical._kind_id
    return kind in _IMAGES or kind in (_PIPE, _SAMPLER, *_QUEUES) or kind > 177


def _is_fixed(spelled: Type) -> bool:
    """Tell whether a program's variable of this type keeps its value."""
    canonical = spelled.get_canonical()
    if canonical.get_address_space() == n.CONSTANT:
        return True
    while n.shape_of(canonical) == n.ARRAY:
        canonical = canonical.get_array_element_type().get_canonical()
    return bool(canonical.is_const_qualified())


def _offset_reader() -> Callable[[Cursor], int]:
    """Return a function that gives the offset of a cursor's name in the file."""
    cindex = clang.library().cindex
    # The bindings ask for the place of a macro's use, which is the same for all its arguments.
    locate = cindex.conf.lib["clang_getFileLocation"]
    number = ctypes.POINTER(ctypes.c_uint)
    locate.argtypes = [cindex.SourceLocation, ctypes.c_void_p, number, number, number]
    locate.restype = None

    def offset_of(cursor: Cursor) -> int:
        found = ctypes.c_uint()
        locate(cursor.location, None, None, None, ctypes.byref(found))
        return found.value

    return offset_of
