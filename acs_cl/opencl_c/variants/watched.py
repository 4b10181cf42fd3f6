"""A variant of one kernel that notes accesses outside of the allowed bytes.

Input: a program's source and options, a kernel. Output: a source, the name of the kernel to use in
it, and the parameters with limits: all pointers to global and constant memory. The new kernel
stands before the kernel, or behind its helpers, with its own versions of those that get such
pointers. For each of the parameters it takes two more `long4`. These are rectangles of bytes from
the pointer on (start, pitch, rows, width) that may be read and written. Then come an array of
`int`, and the place in it where any other access is noted (`strays`). Invariants:
- Apart from that the variant does the same as the kernel, also to bytes outside of the limits,
  unless the notes ask for more.
- A constant of the program is inside of the limits.
- Every read and write of global memory by a pointer is checked, wherever the pointer comes from. If
  one cannot be seen in the text (generic pointers, built-in functions that copy), there is no
  variant.
"""

# Long because: one walk over every kind of access, and the text that checks it.

from __future__ import annotations

import re

import pyopencl as cl

from acs_cl.devices.facts import BuildOptions
from acs_cl.opencl_c.parse import clang
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.clang import CannotParse
from acs_cl.opencl_c.parse.preprocess import unit_with
from acs_cl.opencl_c.parse.tree import Cursor, Type
from acs_cl.opencl_c.variants import strays
from acs_cl.opencl_c.variants.edits import (
    Edits,
    Pointer,
    at_top,
    closing,
    edited,
    least_of,
    place_of,
    placed,
    pointer_of,
    renamed,
)
from acs_cl.opencl_c.variants.guards import reached

from ...records import NamedTuple

_SUFFIX = "__acs_watched"
_ATOMIC = re.compile(r"atom(ic)?_")
_VECTOR_MEMORY = re.compile(r"v(load|store)(_half)?(\d*)(_rt[ezpn])?$")
_WAYS = {"r": strays.READ, "w": strays.WRITTEN, "rw": strays.READ | strays.WRITTEN}
_SUMS = frozenset({6, 7})
"""Plus and minus."""


class Watched(NamedTuple):
    """The variant. `parameters`: how many its kernel has. `limited`: those with limits.
    `constants`: those of the program that it uses, with their bytes."""

    source: str
    kernel: str
    parameters: int
    limited: list[int]
    constants: list[tuple[str, int]]


def watching(source: str, options: BuildOptions, device: cl.Device | None, kernel: str) -> Watched:
    """Return the variant. Raises `CannotParse` if there is none."""
    with clang.LOCK:
        unit = unit_with(source, options, device, kernel)
        cursor = unit.kernels[kernel]
        watch = _Watch(unit)
        variant, limited = watch.kernel(cursor)
        result = placed(unit, cursor, variant, watch.place, stays=True)
        clang.parse(result, options, device)
        parameters, constants = len(n.parameters_of(cursor)), list(watch.constants.items())
        return Watched(result, kernel + _SUFFIX, parameters, limited, constants)


class Part(NamedTuple):
    """A member of a structure, or of one in it: where it begins, its bytes, and how many of these
    any access touches."""

    offset: int
    bytes: int
    least: int


def _part(cursor: Cursor, inner: Part | None) -> Part | None:
    """Return the part of a structure that an expression of a member names, of which `inner` is
    used. None: all of the structure counts."""
    field = cursor.referenced
    bits = -1 if field is None or field._kind_id != n.FIELD_DECL else field.get_field_offsetof()
    if bits < 0:
        return None
    if inner is not None:
        return inner._replace(offset=bits // 8 + inner.offset)
    kind = cursor.type.get_canonical()
    return Part(bits // 8, kind.get_size(), least_of(kind, kind.get_size()))


class _Watch:
    """One walk over a kernel and its helpers. It knows how the place of each expression is used:
    read, written, or both ('r' 'w' 'rw'), or only its address is taken ('')."""

    def __init__(self, unit: clang.Unit) -> None:
        self._unit = unit
        self._data = unit.data
        self._collect = clang.library().collect
        self._edits: Edits = []
        """In the order of their adding. At one place, the outer edit comes first if both begin
        there, the inner one if both end there."""
        self._numbers: dict[str, int] = {}
        self._sides: dict[int, int] = {}
        """Of parameters that always point into their own array: their place among those with
        limits."""
        self.constants: dict[str, int] = {}
        """Constants of the program that are used, with their bytes."""
        self._first_constant = 0
        """The side of the first of them: behind the parameters with limits."""
        self.place = 0
        """Where the variant stands."""
        self._inside: Cursor | None = None
        """The function that is read."""
        self._likeliest = 0
        self._given = self._more = ""
        self._known: set[int] = set()
        self._naming: dict[int, bool] = {}
        """Whether functions name constants of the program. A helper may be called very often."""
        self._helpers: list[str] = []
        """Versions of helpers here, each behind the ones that it calls."""

    def kernel(self, kernel: Cursor) -> tuple[str, list[int]]:
        """Return the text of the variant with its helpers, and the parameters that have limits."""
        functions = reached(self._unit, kernel.spelling).values()
        helpers = (one for function in functions for one in function.cursors)
        self.place = place_of(self._unit, kernel, helpers)
        declared = n.parameters_of(kernel)
        watched, constant = [], set()
        for index, cursor in enumerate(declared):
            found = pointer_of(cursor.type)
            if found is not None and found.space in (n.GLOBAL, n.CONSTANT):
                watched.append(index)
                if found.space == n.CONSTANT:
                    constant.add(index)
        if not watched:
            raise CannotParse("it has no pointer to global memory")
        self._numbers = {declared[index].spelling: index for index in watched}
        self._likeliest, self._first_constant = watched[0], len(watched)
        moved = self._moved(n.body_of(kernel))
        for side, index in enumerate(watched):
            key = n.identity(declared[index])
            if key not in moved:
                self._sides[key] = side
        own, given, more = "", "", ""
        for one in watched:
            own += f", long4 acs__read_{one}, long4 acs__written_{one}"
            given += f", acs__base_{one}, acs__read_{one}, acs__written_{one}"
            more += f", ulong acs__base_{one}, long4 acs__read_{one}, long4 acs__written_{one}"
        self._given = f"{given}, acs__stray, acs__item"
        self._more = f"{more}, volatile __global int *acs__stray, int acs__item"
        first = "".join(
            f" const ulong acs__base_{one} = (ulong){declared[one].spelling or 0};"
            for one in watched
        )
        text = self._function(
            kernel,
            f"{own}, volatile __global int *acs__strays, int acs__slot",
            f"{first} volatile __global int *acs__stray = acs__strays + acs__slot;"
            " const int acs__item = acs__number();",
        )
        head = strays.helpers(watched, constant, self._more, self._given, list(self.constants))
        return "\n".join([head, *self._helpers, text]), watched

    def _function(self, function: Cursor, extra: str, first: str) -> str:
        """Return the text of a function with its name, parameters and accesses changed."""
        before, self._edits = self._edits, []
        outer, self._inside = self._inside, function
        self._edits.append(renamed(self._unit, function, function.spelling + _SUFFIX))
        last = n.parameters_of(function)[-1]
        self._insert(closing(self._data, last.extent.end.offset), extra)
        self._edits.append(at_top(self._unit, function, first))
        self._below(n.body_of(function))
        text = edited(self._unit, function, self._edits, self.place)
        self._edits, self._inside = before, outer
        return text

    def _moved(self, cursor: Cursor) -> set[int]:
        """Return the variables that a body assigns, or whose address it takes."""
        found: set[int] = set()
        kind, operator = cursor._kind_id, n.operator_of(cursor)
        below = self._collect(cursor)
        is_address = kind == n.UNARY_OPERATOR and operator == n.ADDRESS_OF
        if is_address or n.assigns(kind, operator):
            found |= self._named(below[0])
        for child in below:
            found |= self._moved(child)
        return found

    def _named(self, place: Cursor) -> set[int]:
        """Return the variables that an lvalue names, but for those that lead to other memory."""
        kind, below = place._kind_id, self._collect(place)
        if kind == n.DECL_REF_EXPR:
            return {n.identity(place.referenced)} if place.referenced is not None else set()
        lead = {n.ARRAY_SUBSCRIPT_EXPR, n.MEMBER_REF_EXPR, n.COMPOUND_LITERAL}
        is_dereferenced = kind == n.UNARY_OPERATOR and n.operator_of(place) == n.DEREFERENCE
        if kind in lead or is_dereferenced or _is_arrow(place, below):
            return set()
        return set().union(*(self._named(child) for child in below))

    # ---- the walk ----

    def _below(self, cursor: Cursor) -> None:
        for child in self._collect(cursor):
            self._look(child, "r")

    def _look(self, cursor: Cursor, how: str, part: Part | None = None) -> None:
        """Note how a place is used. `part`: the part of it that is, if that is not all."""
        kind = cursor._kind_id
        if kind == n.ARRAY_SUBSCRIPT_EXPR:
            self._element(cursor, how, part)
        elif kind == n.MEMBER_REF_EXPR:
            self._member(cursor, how, part)
        elif kind in (n.PAREN_EXPR, n.UNEXPOSED_EXPR):
            below = self._collect(cursor)
            if _is_arrow(cursor, below):
                self._member(cursor, how, None)
                return
            for child in below:
                decays = n.shape_of(child.type) == n.ARRAY and n.shape_of(cursor.type) == n.POINTER
                self._look(child, "" if decays else how, part)
        elif kind == n.UNARY_OPERATOR:
            self._unary(cursor, how, part)
        elif kind in (n.BINARY_OPERATOR, n.COMPOUND_ASSIGNMENT):
            left, right = self._collect(cursor)
            assigns = n.operator_of(cursor) == n.ASSIGN
            self._look(left, "rw" if kind == n.COMPOUND_ASSIGNMENT else "w" if assigns else "r")
            self._look(right, "r")
        elif kind == n.CALL_EXPR:
            self._call(cursor)
        elif kind in (n.BLOCK_EXPR, n.GCC_ASM_STMT, n.MS_ASM_STMT):
            raise CannotParse("a block of code as a value, or inline assembly")
        elif kind == n.STRING_LITERAL:
            raise CannotParse("a text, which has no name")
        elif kind == n.DECL_REF_EXPR:
            self._variable(cursor)
        elif kind != n.SIZEOF_EXPR:
            self._below(cursor)

    def _element(self, cursor: Cursor, how: str, part: Part | None) -> None:
        base, index = self._collect(cursor)
        pointer = pointer_of(base.type)
        if pointer is None:  # of a vector; or index[pointer]
            if pointer_of(index.type) is not None:
                raise CannotParse("an index in front of its pointer")
            self._look(base, "rw" if "w" in how else how)
            self._look(index, "r")
            return
        is_place = n.shape_of(cursor.type) != n.ARRAY
        with_look = self._is_watched(pointer) and is_place and how
        if with_look:
            begin, end = self._extent(cursor)
            if self._data[end - 1 : end] != b"]":
                raise CannotParse("an index is not where it is used")
            self._insert(begin, f"(*({pointer.written})(acs__at((ulong)&(")
        self._look(base, "r")
        self._look(index, "r")
        if with_look:
            self._insert(end, f"){self._compared(base, how, pointer, part)}))")

    def _member(self, cursor: Cursor, how: str, part: Part | None) -> None:
        children = self._collect(cursor)
        pointer = pointer_of(children[0].type) if children else None
        member = _part(cursor, part)
        if pointer is None:
            for child in children:
                self._look(child, how, member)
            return
        is_place = n.shape_of(cursor.type) != n.ARRAY
        self._pointed(children[0], cursor, how if is_place else "", member)

    def _pointed(self, child: Cursor, parent: Cursor, how: str, part: Part | None = None) -> None:
        """Note how the target of a pointer is used."""
        pointer = pointer_of(child.type)
        if pointer is None or not how or not self._is_watched(pointer):
            self._look(child, "r")
            return
        begin, end = self._extent(child)
        if (begin, end) == self._extent(parent):
            raise CannotParse("a pointer is not where it is used")
        self._insert(begin, f"(({pointer.written})(acs__at((ulong)(")
        self._look(child, "r")
        self._insert(end, f"){self._compared(child, how, pointer, part)}))")

    def _compared(self, base: Cursor, how: str, pointer: Pointer, part: Part | None) -> str:
        """Return the text behind the address of a place, of which a part is compared."""
        if part is None:
            return f", {pointer.bytes}, {self._rest(base, how, pointer)})"
        rest = self._rest(base, how, pointer._replace(least=part.least))
        return f" + {part.offset}, {part.bytes}, {rest}) - {part.offset}"

    def _unary(self, cursor: Cursor, how: str, part: Part | None) -> None:
        operator = n.operator_of(cursor)
        child = self._collect(cursor)[0]
        if operator == n.DEREFERENCE:
            is_place = n.shape_of(cursor.type) != n.ARRAY
            self._pointed(child, cursor, how if is_place else "", part)
        elif operator == n.ADDRESS_OF:
            self._look(child, "")
        else:
            kept = how if operator == n.EXTENSION else "r"
            of = part if operator == n.EXTENSION else None
            self._look(child, "rw" if operator in n.INCREMENTS else kept, of)

    def _variable(self, cursor: Cursor) -> None:
        """Note a constant of the program, whose bytes are no argument's."""
        target = cursor.referenced
        if target is None or target._kind_id != n.VAR_DECL or not _is_constant(target.type):
            return
        function = self._inside
        assert function is not None
        begin, end = self._extent(function)
        if begin <= target.location.offset < end:
            raise CannotParse("a constant that only one function can name")
        if _holds_pointers(target.type):
            raise CannotParse("a constant that holds pointers")
        self.constants[target.spelling] = target.type.get_size()

    # ---- calls ----

    def _call(self, cursor: Cursor) -> None:
        callee, *arguments = self._collect(cursor)
        while callee._kind_id != n.DECL_REF_EXPR:
            below = self._collect(callee)
            if len(below) != 1:
                raise CannotParse("a call through a function pointer")
            callee = below[0]
        target = callee.referenced
        if target is None:
            raise CannotParse("a call of something unknown")
        definition = target.get_definition()
        if definition is None:
            self._builtin(target.spelling, cursor, arguments)
            return
        for argument in arguments:
            self._look(argument, "r")
        pointers = [pointer_of(argument.type) for argument in arguments]
        if not any(one is not None and self._is_watched(one) for one in pointers) and not (
            self._names_constants(definition)
        ):
            return
        begin, end = self._extent(callee)
        close = cursor.extent.end.offset
        if (
            self._data[begin:end] != target.spelling.encode()
            or self._data[close - 1 : close] != b")"
        ):
            raise CannotParse(f"a call of {target.spelling} is not where it is made")
        self._insert(end, _SUFFIX)
        self._insert(close - 1, self._given)
        self._helper(definition)

    def _helper(self, definition: Cursor) -> None:
        key = n.identity(definition)
        if key in self._known:
            return
        if definition.spelling in self._unit.kernels:
            raise CannotParse("it calls a kernel")
        self._known.add(key)
        self._helpers.append(self._function(definition, self._more, ""))

    def _names_constants(self, function: Cursor) -> bool:
        """Tell whether a function, or one that it calls, names constants of the program, and none
        that keep it from being watched."""
        key = n.identity(function)
        if key not in self._naming:
            self._naming[key] = False  # for a function that calls itself
            self._naming[key] = self._look_for_constants(function)
        return self._naming[key]

    def _look_for_constants(self, function: Cursor) -> bool:
        own = function.extent.start.offset, function.extent.end.offset
        found, below = False, [n.body_of(function)]
        while below:
            cursor = below.pop()
            below += self._collect(cursor)
            target = cursor.referenced if cursor._kind_id == n.DECL_REF_EXPR else None
            if target is None:
                continue
            if target._kind_id == n.VAR_DECL and _is_constant(target.type):
                if own[0] <= target.location.offset < own[1] or _holds_pointers(target.type):
                    return False
                found = True
            definition = target.get_definition() if target._kind_id == n.FUNCTION_DECL else None
            found = found or (definition is not None and self._names_constants(definition))
        return found

    def _builtin(self, name: str, cursor: Cursor, arguments: list[Cursor]) -> None:
        pointers = [pointer_of(argument.type) for argument in arguments]
        watched = [one is not None and self._is_watched(one) for one in pointers]
        vector = _VECTOR_MEMORY.match(name)
        if vector and watched and watched[-1]:
            self._vector(vector, arguments)
        elif _ATOMIC.match(name) and watched[:1] == [True] and not any(watched[1:]):
            self._pointed(arguments[0], cursor, "rw")
            for argument in arguments[1:]:
                self._look(argument, "r")
        elif not any(watched) or name == "prefetch":
            for argument in arguments:
                self._look(argument, "r")
        else:
            raise CannotParse(f"a pointer goes to {name}")

    def _vector(self, match: re.Match[str], arguments: list[Cursor]) -> None:
        """Rewrite `vload4(index, pointer)`: several elements, at a multiple of their number."""
        *data, index, pointer = arguments
        for argument in data:
            self._look(argument, "r")
        found = pointer_of(pointer.type)
        assert found is not None
        if not _is_steady(pointer):
            raise CannotParse(f"a pointer in a call of {match[0]} that changes something")
        count, way = int(match[3] or 1), "r" if match[1] == "load" else "w"
        (begin, end), (at, to) = self._extent(index), self._extent(pointer)
        if end >= at:
            raise CannotParse(f"a call of {match[0]} is not where it is made")
        text, size = self._data[at:to].decode("utf-8"), count * found.bytes
        self._insert(begin, "((long)(acs__at((ulong)(" + text + f") + {size} * (ulong)(")
        self._look(index, "r")
        rest = self._rest(pointer, way, found._replace(least=size))
        self._insert(end, f"), {size}, {rest}) - (ulong)({text})) / {size})")
        self._look(pointer, "r")

    # ---- the text ----

    def _rest(self, pointer: Cursor, how: str, target: Pointer) -> str:
        """Return the arguments of `acs__at` besides address and size."""
        one = self._likely(pointer)
        number = self._likeliest if one is None else one
        limits = f"acs__base_{number}, acs__read_{number}, acs__written_{number}"
        way = _WAYS[how] | (strays.CONSTANT if target.space == n.CONSTANT else 0)
        return f"{target.least}, {way}, {self._side(pointer)}, {limits}{self._given}"

    def _side(self, pointer: Cursor) -> int:
        """Return the side of the parameter or constant that a pointer surely comes from. -1: it is
        not known. Of a helper's parameter it is not: one call may pass one array, another call
        another."""
        while True:
            kind, below = pointer._kind_id, self._collect(pointer)
            if kind == n.DECL_REF_EXPR:
                return self._side_of(pointer.referenced)
            if kind == n.BINARY_OPERATOR:
                if n.operator_of(pointer) not in _SUMS:
                    return -1
                below = [one for one in below if pointer_of(one.type) is not None]
            elif kind not in (n.PAREN_EXPR, n.UNEXPOSED_EXPR, n.CAST_EXPR):
                return -1
            below = [one for one in below if n.is_expression(one._kind_id)]
            if len(below) != 1 or pointer_of(below[0].type) is None:
                return -1
            pointer = below[0]

    def _side_of(self, target: Cursor | None) -> int:
        if target is None:
            return -1
        is_array = n.shape_of(target.type.get_canonical()) == n.ARRAY
        if target.spelling in self.constants and is_array and _is_constant(target.type):
            return self._first_constant + list(self.constants).index(target.spelling)
        return self._sides.get(n.identity(target), -1)

    def _likely(self, pointer: Cursor) -> int | None:
        """Return the first parameter that a pointer names."""
        if pointer._kind_id == n.DECL_REF_EXPR:
            return self._numbers.get(pointer.spelling)
        for one in self._collect(pointer):
            found = self._likely(one)
            if found is not None:
                return found
        return None

    def _insert(self, place: int, text: str) -> None:
        self._edits.append((place, place, text))

    def _extent(self, cursor: Cursor) -> tuple[int, int]:
        extent = cursor.extent
        return extent.start.offset, extent.end.offset

    @staticmethod
    def _is_watched(pointer: Pointer) -> bool:
        if pointer.space == n.GENERIC:
            raise CannotParse("a pointer to memory of any kind")
        if pointer.space not in (n.GLOBAL, n.CONSTANT):
            return False
        if pointer.bytes <= 0 or any(sign in pointer.written for sign in "([&"):
            raise CannotParse("a pointer whose type cannot be written in one piece")
        return True


def _is_arrow(cursor: Cursor, below: list[Cursor]) -> bool:
    """Tell whether this is a component of a pointer's target (`p->x` of a vector)."""
    if cursor._kind_id != n.UNEXPOSED_EXPR or len(below) != 1:
        return False
    pointer = below[0].type.get_canonical()
    return (
        n.shape_of(pointer) == n.POINTER
        and n.shape_of(pointer.get_pointee()) == n.VECTOR
        and n.shape_of(cursor.type) in (n.NUMBER, n.VECTOR)
    )


def _is_constant(spelled: Type) -> bool:
    """Tell whether a variable is in constant memory."""
    canonical = spelled.get_canonical()
    while n.shape_of(canonical) == n.ARRAY:
        if canonical.get_address_space() == n.CONSTANT:
            return True
        canonical = canonical.get_array_element_type().get_canonical()
    return canonical.get_address_space() == n.CONSTANT


def _holds_pointers(spelled: Type) -> bool:
    """Tell whether a value of a type may have pointers in it."""
    canonical = spelled.get_canonical()
    shape = n.shape_of(canonical)
    if shape == n.ARRAY:
        return _holds_pointers(canonical.get_array_element_type())
    if shape == n.RECORD:
        return any(_holds_pointers(field.type) for field in canonical.get_fields())
    return shape not in (n.NUMBER, n.BOOL, n.VECTOR)


def _is_steady(cursor: Cursor) -> bool:
    """Tell whether an expression may be evaluated twice."""
    kind = cursor._kind_id
    if kind in (n.CALL_EXPR, n.STATEMENT_EXPRESSION) or n.assigns(kind, n.operator_of(cursor)):
        return False
    return all(_is_steady(child) for child in clang.library().collect(cursor))
