"""The syntax tree as plain Python objects, reduced to what the analysis of bodies needs.

Input: a cursor of libclang. Output: `Node`s. Invariant: every child expression of the source is a
child here, in order. Unknown nodes keep their kind, so that a reader can treat them as unknown.
Converting a node calls the C library about ten times; walking the result does not call it. That
makes a fixed point over several functions cheap.
"""

# Long because: one conversion of every kind of node and type.

from __future__ import annotations

import ctypes
import weakref

from acs_cl.opencl_c.parse import clang
from acs_cl.opencl_c.parse.tree import Collect, Cursor, Type, TypeOf

from ...records import NamedTuple

# Kinds of libclang's cursors, by the numbers of its C interface.
STRUCT_DECL, UNION_DECL, ENUM_DECL = 2, 3, 5
FIELD_DECL = 6
FUNCTION_DECL, VAR_DECL, PARM_DECL, TYPEDEF_DECL = 8, 9, 10, 20
UNEXPOSED_EXPR, DECL_REF_EXPR, MEMBER_REF_EXPR, CALL_EXPR = 100, 101, 102, 103
BLOCK_EXPR, INTEGER_LITERAL, FLOATING_LITERAL, STRING_LITERAL = 105, 106, 107, 109
ENUM_CONSTANT = 7
CHARACTER_LITERAL, PAREN_EXPR, UNARY_OPERATOR, ARRAY_SUBSCRIPT_EXPR = 110, 111, 112, 113
BINARY_OPERATOR, COMPOUND_ASSIGNMENT, CONDITIONAL, CAST_EXPR = 114, 115, 116, 117
COMPOUND_LITERAL, INIT_LIST, STATEMENT_EXPRESSION, SIZEOF_EXPR = 118, 119, 121, 136
GENERIC_SELECTION = 122
OFFSET_EXPR = 199  # ours: the parser shows `offsetof(t, m[i])` as a conversion of `i`
UNEXPOSED_STMT = 200
LABEL, COMPOUND, CASE, DEFAULT, IF, SWITCH, WHILE, DO, FOR = range(201, 210)
GOTO, INDIRECT_GOTO, CONTINUE, BREAK, RETURN_STMT, GCC_ASM_STMT = range(210, 216)
MS_ASM_STMT, NULL_STMT, DECL_STMT = 229, 230, 231
_STATIC_ASSERT = 602

# Shape of a type, as far as pointers go.
NUMBER, VECTOR, POINTER, ARRAY, RECORD, BOOL, VOID, IMAGE, OTHER = range(9)
_VOID = 2
_CLASSES = {_VOID: VOID, 3: BOOL, 101: POINTER, 105: RECORD, 112: ARRAY, 114: ARRAY, 113: VECTOR}
_CLASSES |= {115: ARRAY, 176: VECTOR, 106: NUMBER, 177: NUMBER}
_CLASSES |= dict.fromkeys((*range(4, 24), 30, 31, 32, 39), NUMBER)
_CLASSES |= dict.fromkeys(range(121, 157), IMAGE)

# Integers by their bits, negative if unsigned, on a target whose long has 64 bits. OpenCL C
# reserves `long long`: drivers give it 128 bits or 64, or refuse it.
_INTEGERS = {3: -1, 4: -8, 5: -8, 8: -16, 9: -32, 10: -64}
_INTEGERS |= {13: 8, 14: 8, 16: 16, 17: 32, 18: 64}
_RESERVED = frozenset({11, 19, 23})
"""`unsigned long long`, `long long`, `long double`."""
_RECORD, _VECTORS, _ARRAYS = 105, frozenset({113, 176}), frozenset({112, 114, 115})
_CONSTANT_ARRAY = 112
MOST_PARTS = 64
"""Numbers of a structure, a vector or an array that are told apart."""

# Address spaces, as libclang numbers them for OpenCL.
GLOBAL, LOCAL, CONSTANT, PRIVATE, GENERIC = 1, 2, 3, 4, 5
SPACES = {1: "global", 2: "local", 3: "constant", 4: "private", 5: "generic"}

ASSIGN, COMMA = 22, 33
ASSIGNING = {23: 3, 24: 4, 25: 5, 26: 6, 27: 7, 28: 8, 29: 9, 30: 17, 31: 18, 32: 19}
"""The operator that a compound assignment applies."""
COMPARISONS = frozenset(range(10, 17)) | {20, 21}
INCREMENTS, ADDRESS_OF, DEREFERENCE, LOGICAL_NOT = frozenset({1, 2, 3, 4}), 5, 6, 10
POSTFIX, UPWARDS = frozenset({1, 2}), frozenset({1, 3})
"""Increments whose value is the old one, and those that add one."""
EXTENSION = 13

# Expressions whose value is never an array. If it looks like one, it comes from a parameter.
_DECAYED = frozenset(
    {PARM_DECL, UNEXPOSED_EXPR, CALL_EXPR, BINARY_OPERATOR, COMPOUND_ASSIGNMENT, CONDITIONAL,
     CAST_EXPR, STATEMENT_EXPRESSION}
)  # fmt: skip


_LITERALS = frozenset({INTEGER_LITERAL, CHARACTER_LITERAL, SIZEOF_EXPR, OFFSET_EXPR})


class Part(NamedTuple):
    """A whole number in a structure, a vector or an array."""

    offset: int  # in bytes
    number: int  # its bits, negative if unsigned
    name: str  # behind that of the whole, as `.x` or `.dims[1]`


IMAGE_PARTS = tuple(
    Part(4 * at, 32, f".{name}") for at, name in enumerate(("width", "height", "depth", "layers"))
)
"""Numbers of an image, as the core asks the driver for them: see `sizes_of_image` there."""


class Node:
    """One expression, statement or variable."""

    __slots__ = (
        "bytes", "children", "component", "fields", "is_doubtful", "is_null", "jumps", "key",
        "kind", "literal", "name", "number", "offset", "operator", "parts", "pointee",
        "pointee_bytes", "pointee_const", "pointee_space", "reference", "shape", "sizeless",
        "space",
    )  # fmt: skip

    kind: int
    shape: int  # NUMBER, POINTER, ...
    space: int  # of the object, for variables and lvalues
    number: int  # an integer's bits, negative if unsigned; 0: no integer
    literal: int | None  # the value of an integer constant
    pointee: int  # shape of what a pointer points to
    pointee_bytes: int  # its size; 0: it has none, or the parser does not know it
    pointee_space: int
    pointee_const: bool
    children: list[Node]
    sizeless: bool  # an array or a structure of no bytes, or of unknown size
    key: int  # identity of the declaration itself, or of the one it refers to
    name: str  # of a variable, a reference or a member
    bytes: int  # the size of a member or an element
    offset: int  # of a member; below 0: it has no bytes of its own
    parts: tuple[Part, ...]  # of a structure, a vector, an array or an image; none: not told apart
    fields: tuple[int, ...]  # offsets of what a list of values is for; none: not known
    component: tuple[int, ...] | None  # components of a vector; none of them: not known
    is_doubtful: bool  # whether what looks like components may be a value that is only read
    reference: Cursor | None  # cursor of the function that a reference names
    operator: int
    jumps: frozenset[int] | None  # kinds of jumps that leave it; None: not looked for
    is_null: bool  # a constant zero that becomes a pointer


def empty(kind: int) -> Node:
    """Make a node of a kind that has nothing."""
    node = Node()
    node.kind = kind
    node.shape = node.pointee = OTHER
    node.space = node.pointee_space = node.key = node.operator = 0
    node.number = node.pointee_bytes = node.bytes = 0
    node.pointee_const = node.is_null = node.sizeless = node.is_doubtful = False
    node.name, node.reference, node.literal, node.jumps = "", None, None, None
    node.offset, node.component = -1, None
    node.parts, node.fields = (), ()
    node.children = []
    return node


def is_arrow(node: Node) -> bool:
    """Tell whether this is `p->xy` on a vector's pointer, which the tree shows without a name."""
    if node.kind != UNEXPOSED_EXPR or len(node.children) != 1:
        return False
    child = node.children[0]
    return child.shape == POINTER and child.pointee == VECTOR and node.shape in (NUMBER, VECTOR)


def is_component(node: Node) -> bool:
    """Tell whether this is `p.xy` on a vector or its pointer, or may be. A variable that is only
    read loses the space that it is in."""
    child = node.children[0]
    if is_arrow(node):
        return True
    if child.shape != VECTOR or node.shape not in (NUMBER, VECTOR):
        return False
    element = child.parts[0].number if child.parts else 0
    if node.shape == NUMBER:
        return node.number == element  # if not, it is `as_uint(v)`
    own = node.parts[0].number if node.parts else 0
    return own == element and child.space == node.space


def is_expression(kind: int) -> bool:
    """Tell whether a cursor kind is an expression."""
    return 100 <= kind < 200


def operator_of(cursor: Cursor) -> int:
    """Return the operator of an expression. 0: it has none."""
    lib = clang.library().cindex.conf.lib
    if cursor._kind_id in (BINARY_OPERATOR, COMPOUND_ASSIGNMENT):
        return int(lib.clang_getCursorBinaryOperatorKind(cursor))
    is_unary = cursor._kind_id == UNARY_OPERATOR
    return int(lib.clang_getCursorUnaryOperatorKind(cursor)) if is_unary else 0


def assigns(kind: int, operator: int) -> bool:
    """Tell whether an expression assigns what is its first child."""
    return (
        kind == COMPOUND_ASSIGNMENT
        or (kind == BINARY_OPERATOR and operator == ASSIGN)
        or (kind == UNARY_OPERATOR and operator in INCREMENTS)
    )


def identity(cursor: Cursor) -> int:
    """Return the address of a declaration in the parser, the same for every cursor on it."""
    return int(cursor.data[0] or 0)


def shape_of(kind_type: Type) -> int:
    """Return the shape of a type, as far as pointers go."""
    return _CLASSES.get(kind_type.get_canonical()._kind_id, OTHER)


def parameters_of(function: Cursor) -> list[Cursor]:
    """Return the parameters of a function."""
    return [one for one in clang.library().collect(function) if one._kind_id == PARM_DECL]


def body_of(function: Cursor) -> Cursor:
    """Return the body of a function that is defined."""
    return next(one for one in clang.library().collect(function) if 200 <= one._kind_id < 300)


_converters: weakref.WeakKeyDictionary[object, _Converter] = weakref.WeakKeyDictionary()
"""By tree. Whoever asks has the lock of `clang`."""


def convert(cursor: Cursor) -> Node:
    """Convert the tree below a cursor."""
    converter = _converters.get(cursor._tu)
    if converter is None:
        library = clang.library()
        converter = _Converter(library.cindex.conf.lib, library.collect, library.type_of)
        _converters[cursor._tu] = converter
    return converter.node(cursor)


TOO_DEEP = RecursionError, ctypes.ArgumentError
"""What Python raises where expressions are nested too deeply: ctypes makes its own error of it."""


class _Typed(NamedTuple):
    """What a node has of its type: see `Node`."""

    shape: int
    number: int = 0
    space: int = 0
    sizeless: bool = False
    parts: tuple[Part, ...] = ()
    pointee_bytes: int = 0
    pointee: int = OTHER
    pointee_space: int = 0
    pointee_const: bool = False


class _Converter:
    """Converts cursors of one tree. It holds none of them."""

    def __init__(self, lib: ctypes.CDLL, collect: Collect, type_of: TypeOf) -> None:
        self.lib = lib
        self.collect = collect
        self.type_of = type_of
        self.types: dict[int | None, _Typed] = {}  # by identity
        self.reserved: dict[int, bool] = {}  # structures, by their declarations
        self.parts: dict[object, tuple[Part, ...]] = {}  # by structure or vector

    def node(self, cursor: Cursor) -> Node:
        kind = cursor._kind_id
        node = empty(kind)
        if is_expression(kind) or kind in (VAR_DECL, PARM_DECL):
            self._set_type(node, cursor)
        below = [child for child in self.collect(cursor) if not self._is_aside(child._kind_id)]
        if kind in (CAST_EXPR, COMPOUND_LITERAL):
            below = below[-1:]  # in front of it are sizes of arrays in the type
        node.children = [self.node(child) for child in below]
        if kind == VAR_DECL and node.shape in (ARRAY, POINTER):
            node.children = [child for child in node.children if not child.number]  # likewise
        if len(below) == 1 and self._is_transparent(node, cursor):
            return node.children[0]
        if node.shape == ARRAY and self._is_decayed(node, cursor):
            self._decay(node, cursor.type)
        if self._is_offset(node, cursor, below):
            kind = node.kind = OFFSET_EXPR
        if node.number and (kind in _LITERALS or (kind == DECL_REF_EXPR and not below)):
            node.literal = self._constant(node, cursor)
        if kind == DECL_REF_EXPR:
            self._set_reference(node, cursor)
        elif kind == MEMBER_REF_EXPR:
            self._set_member(node, cursor, below)
        elif kind == ARRAY_SUBSCRIPT_EXPR:
            node.bytes = self._size(cursor.type.get_canonical())
        elif kind == INIT_LIST:
            self._set_fields(node, cursor, below)
        elif kind == UNEXPOSED_EXPR and len(below) == 1 and is_component(node):
            node.component = ()
            node.is_doubtful = self._is_doubtful(node, cursor, below[0])
        elif kind in (VAR_DECL, PARM_DECL):
            node.key, node.name = identity(cursor.canonical), cursor.spelling
        elif kind in (BINARY_OPERATOR, COMPOUND_ASSIGNMENT, UNARY_OPERATOR):
            node.operator = operator_of(cursor)
        elif kind in (CAST_EXPR, UNEXPOSED_EXPR) and node.shape == POINTER and below:
            number = node.children[-1].shape in (NUMBER, BOOL)
            node.is_null = number and self._evaluated(below[-1]) == 0
        return node

    def _is_transparent(self, node: Node, cursor: Cursor) -> bool:
        """Tell whether an expression is the one below it: a designated value (`.x = 1`), which the
        tree gives no type, or `__extension__`."""
        if node.kind == UNARY_OPERATOR:
            return operator_of(cursor) == EXTENSION
        return node.kind == UNEXPOSED_EXPR and node.shape == VOID

    @staticmethod
    def _is_doubtful(node: Node, cursor: Cursor, below: Cursor) -> bool:
        """Tell whether what looks like components may be a value of the same type."""
        if node.shape != VECTOR or node.space or node.children[0].shape != VECTOR:
            return False
        own, inner = cursor.type.get_canonical(), below.type.get_canonical()
        return own.element_count == inner.element_count and bool(
            cursor.extent.end == below.extent.end
        )

    @staticmethod
    def _is_offset(node: Node, cursor: Cursor, below: list[Cursor]) -> bool:
        """Tell whether an apparent conversion to `size_t` begins before the expression it
        converts."""
        if node.kind != UNEXPOSED_EXPR or node.number != -64 or len(below) != 1:
            return False
        if not node.children[0].number:
            return False
        return bool(cursor.extent.start != below[0].extent.start)

    @staticmethod
    def _is_aside(kind: int) -> bool:
        return 40 <= kind < 100 or 400 <= kind < 500 or kind == _STATIC_ASSERT

    def _set_type(self, node: Node, cursor: Cursor) -> None:
        which = self.type_of(cursor)
        found = self.types.get(which)
        if found is None:
            found = self.types[which] = self._typed(cursor.type)
        (
            node.shape, node.number, node.space, node.sizeless, node.parts,
            node.pointee_bytes, node.pointee, node.pointee_space, node.pointee_const,
        ) = found  # fmt: skip

    def _typed(self, spelled: Type) -> _Typed:
        """Return what nodes of a type have of it."""
        canonical = spelled.get_canonical()
        kind = canonical._kind_id
        shape = _CLASSES.get(kind, OTHER)
        if kind == 0:
            return _Typed(shape)
        sizeless = shape in (ARRAY, RECORD) and not self._size(canonical)
        parts = IMAGE_PARTS if shape == IMAGE else ()
        if shape in (ARRAY, RECORD, VECTOR):
            parts = self._parts(canonical)
        found = _Typed(
            shape, _INTEGERS.get(kind, 0), canonical.get_address_space(), sizeless, parts
        )
        if shape != POINTER:
            return found
        pointee = canonical.get_pointee()
        return found._replace(
            pointee_bytes=self._size(pointee),
            pointee=_CLASSES.get(pointee._kind_id, OTHER),
            pointee_space=pointee.get_address_space(),
            pointee_const=pointee.is_const_qualified(),
        )

    def _parts(self, canonical: Type) -> tuple[Part, ...]:
        """Return the whole numbers in a type. None: there are none, or too many, or some of its
        bytes are more than one thing."""
        kind = canonical._kind_id
        if kind in _VECTORS:
            element, many = canonical.element_type.get_canonical()._kind_id, canonical.element_count
            key: object = element, many
        elif kind == _RECORD:
            key = identity(canonical.get_declaration())
        else:
            key = None
        found = self.parts.get(key) if key else None
        if found is None:
            found = ()
            if not self._is_reserved(canonical):
                made = self._parts_in(canonical, 0, "")
                found = () if made is None or len(made) > MOST_PARTS else tuple(made)
            if key:
                self.parts[key] = found
        return found

    def _parts_in(self, canonical: Type, at: int, name: str) -> list[Part] | None:
        """Return the parts of a type at an offset. None: too many."""
        kind = canonical._kind_id
        if number := _INTEGERS.get(kind, 0):
            return [Part(at, number, name)] if number != -1 else []
        found: list[Part] = []
        if kind in _VECTORS or kind == _CONSTANT_ARRAY:
            element = canonical.element_type.get_canonical()
            size, many = element.get_size(), canonical.element_count
            if size <= 0 or many > MOST_PARTS:
                return None
            if (made := self._parts_in(element, 0, "")) is None or many * len(made) > MOST_PARTS:
                return None
            for index in range(many if made else 0):
                own = f".{'xyzw'[index] if many <= 4 else f's{index:x}'}"
                inner = own if kind in _VECTORS else f"[{index}]"
                begin = at + index * size
                found += [Part(begin + to, bits, name + inner + of) for to, bits, of in made]
        elif kind == _RECORD:
            if canonical.get_declaration()._kind_id != STRUCT_DECL:
                return []
            for field in canonical.get_fields():
                bits = self._offset(field)
                if bits < 0:
                    continue
                inside = field.type.get_canonical()
                made = self._parts_in(inside, at + bits, f"{name}.{field.spelling}")
                if made is None:
                    return None
                found += made
        return found if len(found) <= MOST_PARTS else None

    def _offset(self, field: Cursor) -> int:
        """Return where a member begins, in bytes. Below 0: it shares bytes with others."""
        if self.lib.clang_Cursor_isBitField(field):
            return -1
        bits = int(self.lib.clang_Cursor_getOffsetOfField(field))
        return bits // 8 if bits >= 0 and bits % 8 == 0 else -1

    def _set_member(self, node: Node, cursor: Cursor, below: list[Cursor]) -> None:
        node.name = "" if "(" in cursor.spelling else cursor.spelling
        field = cursor.referenced
        if field is None or field._kind_id != FIELD_DECL or len(below) != 1:
            return
        node.bytes = self._size(cursor.type.get_canonical())
        base = below[0].type.get_canonical()
        if node.children[0].shape == POINTER:
            base = base.get_pointee().get_canonical()
        parent = field.semantic_parent
        if parent is not None and identity(parent.canonical) == identity(
            base.get_declaration().canonical
        ):  # if not, a structure without a name is between them
            node.offset = self._offset(field)

    def _set_fields(self, node: Node, cursor: Cursor, below: list[Cursor]) -> None:
        """Find what the values of a list are for, unless it names that, or leaves out brackets."""
        canonical = cursor.type.get_canonical()
        types: list[Type] = []
        if any(self._is_named(one) for one in below):
            node.parts = ()
        elif canonical._kind_id == _CONSTANT_ARRAY:
            many = min(canonical.element_count, MOST_PARTS)
            size, types = canonical.element_type.get_size(), [canonical.element_type] * many
            node.fields = tuple(size * at for at in range(many))
        elif node.shape == RECORD:
            fields = list(canonical.get_fields())
            offsets = tuple(map(self._offset, fields))
            types = [field.type for field in fields]
            node.fields = () if min(offsets, default=-1) < 0 else offsets
        if not all(self._is_whole(*one) for one in zip(below, types, strict=False)):
            node.fields = ()

    @staticmethod
    def _is_whole(value: Cursor, of: Type) -> bool:
        """Tell whether a value in a list is for a whole member. If the brackets around those of a
        member are left out, it is for the first thing in this."""
        wanted, own = of.get_canonical(), value.type.get_canonical()
        shape = _CLASSES.get(wanted._kind_id, OTHER)
        if shape not in (ARRAY, RECORD, VECTOR) or value._kind_id == INIT_LIST:
            return True
        if shape == RECORD and own._kind_id == _RECORD:
            return identity(own.get_declaration()) == identity(wanted.get_declaration())
        return shape == _CLASSES.get(own._kind_id, OTHER)

    def _is_named(self, value: Cursor) -> bool:
        """Tell whether a value is designated, as in `.x = 1`: the tree gives it no type."""
        return value._kind_id == UNEXPOSED_EXPR and shape_of(value.type) in (VOID, OTHER)

    def _size(self, canonical: Type) -> int:
        """Return the bytes of a type. 0: the parser gives an error code below zero instead of a
        size, or drivers differ in it."""
        if canonical._kind_id == _VOID:
            return 1  # as clang counts in arithmetic on pointers to it
        if self._is_reserved(canonical):
            return 0
        return max(int(canonical.get_size()), 0)

    def _is_reserved(self, canonical: Type) -> bool:
        """Tell whether there is a type in it whose size OpenCL C leaves open."""
        kind = canonical._kind_id
        if kind == _RECORD:
            key = identity(canonical.get_declaration())
            if key not in self.reserved:
                self.reserved[key] = any(
                    self._is_reserved(one.type.get_canonical()) for one in canonical.get_fields()
                )
            return self.reserved[key]
        if kind in _ARRAYS:
            return self._is_reserved(canonical.get_array_element_type().get_canonical())
        if kind in _VECTORS:
            return self._is_reserved(canonical.element_type.get_canonical())
        return kind in _RESERVED

    def _is_decayed(self, node: Node, cursor: Cursor) -> bool:
        if node.kind == PAREN_EXPR:
            return node.children[0].shape == POINTER
        if node.kind == UNARY_OPERATOR:
            return operator_of(cursor) in INCREMENTS
        return node.kind in _DECAYED

    def _decay(self, node: Node, spelled: Type) -> None:
        # An array parameter is a pointer, but the tree shows the written type, also in expressions
        # made from it.
        element = spelled.get_canonical().get_array_element_type()
        node.shape = POINTER
        node.space = PRIVATE
        node.sizeless = False
        node.parts = ()
        node.pointee = _CLASSES.get(element._kind_id, OTHER)
        node.pointee_bytes = self._size(element)
        node.pointee_space = element.get_address_space()
        node.pointee_const = element.is_const_qualified()

    def _set_reference(self, node: Node, cursor: Cursor) -> None:
        target = cursor.referenced
        if target is None:
            return
        node.name = target.spelling
        if target._kind_id == FUNCTION_DECL:
            node.reference = target.get_definition() or target
            node.key = identity(node.reference)
        elif target._kind_id in (VAR_DECL, PARM_DECL):
            # A redeclared program-scope variable has several cursors; the first one counts for all.
            node.key = identity(target.canonical)
            if target._kind_id == PARM_DECL and node.shape == ARRAY:
                self._decay(node, target.type)

    def _constant(self, node: Node, cursor: Cursor) -> int | None:
        if node.kind == DECL_REF_EXPR:
            target = cursor.referenced
            return int(target.enum_value) if target and target._kind_id == ENUM_CONSTANT else None
        value = self._evaluated(cursor)
        return value if value is None or node.number > 0 else value % 2**-node.number

    def _evaluated(self, cursor: Cursor) -> int | None:
        """Return the value of a constant expression. None: it is no integer, or no constant."""
        result = self.lib.clang_Cursor_Evaluate(cursor)
        if not result:
            return None
        try:
            is_integer = self.lib.clang_EvalResult_getKind(result) == 1
            return int(self.lib.clang_EvalResult_getAsLongLong(result)) if is_integer else None
        finally:
            self.lib.clang_EvalResult_dispose(result)
