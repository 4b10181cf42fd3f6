"""Modes: how a kernel may use the memory behind each pointer argument, read from its body.

Input: a kernel of a parsed unit. Output: a mode ('', 'r', 'w', 'rw') and a reason for each
parameter, and whether memory is touched that no argument names. Invariant: soundness. The walk
knows which expressions read, write or only pass on an address. Anything it does not know counts as
read and written, and as a pointer to anywhere.

The analysis follows pointers through variables, helpers and casts, without regard to the order of
statements. Every variable has one set of places that it may point to (Andersen's analysis; fields
and calls are not distinguished). The functions that the kernel reaches are walked until no set
grows. A place is a tuple:
- ("argument", i): the memory behind parameter i;
- ("variable", key): a variable's own memory, whose contents are tracked;
- ("program", 0): program-scope memory;
- ("constant", 0): memory that is never written;
- ("far", 0) and ("near", 0): the target of a pointer of unknown origin, in global memory or in the
  work-item's and group's own.
"""

# Long because: the rules of one walk belong on one page.

from __future__ import annotations

from collections.abc import Callable

from acs_cl.opencl_c.modes import builtins
from acs_cl.opencl_c.parse import clang, unsaid
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node
from acs_cl.opencl_c.parse.tree import Cursor

from ...records import NamedTuple

Place = tuple[str, int]
Places = frozenset[Place]
_NOWHERE: Places = frozenset()
_FAR: Place = ("far", 0)
_NEAR: Place = ("near", 0)
_PROGRAM: Place = ("program", 0)
_CONSTANT: Place = ("constant", 0)


class Bodies(NamedTuple):
    """The effects of a kernel's body."""

    modes: tuple[tuple[str, str], ...]  # mode and reason for each parameter, in order
    anywhere: str
    program_globals: bool
    has_local_variables: bool
    functions: dict[int, Function]  # the kernel first, and all that it may call, by identity


class Function(NamedTuple):
    """A function as plain nodes."""

    name: str
    parameters: tuple[Node, ...]
    body: tuple[Node, ...]
    result: Place


def analyse(unit: clang.Unit, kernel: Cursor) -> Bodies:
    """Return the modes of all parameters of `kernel`, a definition in `unit`."""
    with clang.LOCK:
        walk = _Walk(kernel, unit.has_unions)
        walk.run()
        return walk.outcome()


class _Walk:
    def __init__(self, kernel: Cursor, puns: bool) -> None:
        self.puns = puns  # a union may be written as a pointer and read as a number, or the reverse
        self.functions: dict[int, Function] = {}
        self.order: list[Function] = []
        self.turn = 1  # backwards if below zero
        self.contents: dict[Place, Places] = {}
        self.escaped: set[Place] = set()
        self.effects: dict[int, dict[str, str]] = {}
        self.anywhere = ""
        self.havoc_reason = ""
        self.program_globals = False
        self.has_local_variables = False
        self.changed = False
        self.current = ""
        self.variables: dict[int, int] = {}  # program-scope ones: address space by key
        self.kernel = self._function(kernel)
        for index, parameter in enumerate(self.kernel.parameters):
            self.effects[index] = {}
            if parameter.shape == n.POINTER:
                self.contents["variable", parameter.key] = frozenset({("argument", index)})

    # ---- the fixed point ----

    def run(self) -> None:
        self.changed = True
        while self.changed:
            self.changed = False
            # calls add functions, which are walked in the same round unless it goes backwards
            for function in self.order if self.turn > 0 else self.order[::-1]:
                self.current = function.name
                self.result = function.result
                for statement in function.body:
                    self._statement(statement)
            self.turn = -self.turn  # chains of copies and of calls may run either way

    def outcome(self) -> Bodies:
        modes = []
        for index, parameter in enumerate(self.kernel.parameters):
            if parameter.shape != n.POINTER:
                modes.append(("", ""))
            elif self.havoc_reason:
                modes.append(("rw", self.havoc_reason))
            else:
                modes.append(self._mode(self.effects[index], parameter))
        return Bodies(
            tuple(modes), self.anywhere, self.program_globals, self.has_local_variables,
            self.functions,
        )  # fmt: skip

    def _mode(self, effects: dict[str, str], parameter: Node) -> tuple[str, str]:
        mode = ("r" if "r" in effects else "") + ("w" if "w" in effects else "")
        if not mode:
            return "", "not touched"
        if "escape" in effects:
            return mode, effects["escape"]
        places = {effects[flag] for flag in mode}
        what = {"r": "only read", "w": "only written", "rw": "read and written"}[mode]
        if places == {self.kernel.name}:
            if mode == "r" and parameter.pointee_const:
                return mode, "const"
            return mode, f"{what} in the body"
        helpers = sorted(places - {self.kernel.name})
        verb = what.removeprefix("only ") if mode != "rw" or len(places) == 1 else "touched"
        return mode, f"{verb} by helper {helpers[0]}"

    def _function(self, cursor: Cursor) -> Function:
        key = n.identity(cursor)
        if key not in self.functions:
            children = clang.library().collect(cursor)
            parameters = tuple(n.convert(c) for c in children if c._kind_id == n.PARM_DECL)
            body = tuple(n.convert(c) for c in children if 200 <= c._kind_id < 300)
            unsaid.complete(cursor, body)
            self.functions[key] = Function(cursor.spelling, parameters, body, ("result", key))
            self.order.append(self.functions[key])
            self.changed = True
        return self.functions[key]

    # ---- records ----

    def _touch(self, places: Places, flag: str) -> None:
        for place in places:
            if place[0] == "argument":
                self._record(place[1], flag, self.current)
            elif place == _FAR:
                self._set_anywhere("a pointer of unknown origin is followed")
            elif place == _PROGRAM:
                self.program_globals = True

    def _record(self, index: int, flag: str, why: str) -> None:
        self.effects[index].setdefault(flag, why)

    def _set_anywhere(self, why: str) -> None:
        self.anywhere = self.anywhere or f"{why} in {self.current}"

    def _havoc(self, why: str) -> None:
        self.havoc_reason = self.havoc_reason or why
        self.anywhere = self.anywhere or why

    def _grow(self, place: Place, value: Places) -> None:
        old = self.contents.get(place, _NOWHERE)
        if not value <= old:
            self.contents[place] = old | value
            self.changed = True
            if place in self.escaped:
                self._escape(value, "its address is stored")

    def _escape(self, value: Places, why: str, flags: str = "rw") -> None:
        """Note that unknown code has these addresses from now on."""
        for place in value:
            if place[0] == "argument":
                for flag in flags:
                    self._record(place[1], flag, self.current)
                self._record(place[1], "escape", why)
            elif place == _PROGRAM:
                self.program_globals = True
            elif place[0] == "variable" and place not in self.escaped:
                self.escaped.add(place)
                self._escape(self.contents.get(place, _NOWHERE), why)
                self._grow(place, frozenset({_FAR}))

    def _load(self, places: Places, node: Node) -> Places:
        self._touch(places, "r")
        found: set[Place] = set()
        for place in places:
            if place[0] in ("variable", "result"):
                found |= self.contents.get(place, _NOWHERE)
            elif node.shape not in (n.NUMBER, n.VECTOR, n.BOOL):
                found.add(_unknown(node))
        if node.kind == n.MEMBER_REF_EXPR and node.shape == n.NUMBER and not self.puns:
            return _NOWHERE  # a structure's number is no part of its pointers
        return frozenset(found)

    def _store(self, places: Places, value: Places) -> None:
        self._touch(places, "w")
        for place in places:
            if place[0] == "variable":
                self._grow(place, value)
            elif value:
                self._escape(value, "its address is stored in memory")
                if place in (_FAR, _NEAR) and value - {_NEAR, _CONSTANT}:
                    self._set_anywhere("a pointer is stored at an unknown address")

    # ---- statements ----

    def _statement(self, node: Node) -> None:
        clang.look_for_interrupts()
        kind = node.kind
        if n.is_expression(kind):
            self._value(node)
        elif kind == n.VAR_DECL:
            self._declare(node)
        elif kind in (n.GCC_ASM_STMT, n.MS_ASM_STMT):
            self._havoc("inline assembly")
        elif kind == n.RETURN_STMT:
            for child in node.children:
                self._grow(self.result, self._value(child))
        elif kind >= 200:
            for child in node.children[:: self.turn]:
                self._statement(child)

    def _declare(self, node: Node) -> None:
        if node.space == n.LOCAL:
            self.has_local_variables = True
        if self.puns and node.shape in (n.RECORD, n.ARRAY):
            self._grow(self._variable(node), frozenset({_FAR}))
        for child in node.children:
            if n.is_expression(child.kind):
                self._grow(self._variable(node), self._value(child))

    def _variable(self, node: Node) -> Place:
        if node.space in (n.GLOBAL, n.GENERIC):
            return _PROGRAM
        if node.space == n.CONSTANT:
            return _CONSTANT
        return "variable", node.key

    # ---- lvalues: where an expression is ----

    def _is_lvalue(self, node: Node) -> bool:
        kind = node.kind
        if kind == n.DECL_REF_EXPR:
            return node.key != 0 and node.reference is None
        if kind == n.PAREN_EXPR or (kind == n.UNEXPOSED_EXPR and len(node.children) == 1):
            return n.is_arrow(node) or self._is_lvalue(node.children[0])
        if kind == n.MEMBER_REF_EXPR:
            return bool(node.children) and (
                node.children[0].shape == n.POINTER or self._is_lvalue(node.children[0])
            )
        if kind == n.UNARY_OPERATOR:
            return node.operator == n.DEREFERENCE
        return kind in (n.ARRAY_SUBSCRIPT_EXPR, n.STRING_LITERAL, n.COMPOUND_LITERAL)

    def _place(self, node: Node) -> Places:
        """Return the places that an lvalue may be. Any other expression gets a new place."""
        kind = node.kind
        if kind == n.DECL_REF_EXPR and self._is_lvalue(node):
            return frozenset({self._variable(node)})
        if kind == n.STRING_LITERAL:
            return frozenset({_CONSTANT})
        if kind in (n.PAREN_EXPR, n.UNEXPOSED_EXPR) and len(node.children) == 1:
            child = node.children[0]
            return self._value(child) if n.is_arrow(node) else self._place(child)
        if kind == n.MEMBER_REF_EXPR and node.children:
            child = node.children[0]
            return self._value(child) if child.shape == n.POINTER else self._place(child)
        if kind == n.UNARY_OPERATOR and node.operator == n.DEREFERENCE:
            return self._value(node.children[0])
        if kind == n.ARRAY_SUBSCRIPT_EXPR and len(node.children) == 2:
            return self._element(node)
        place: Place = ("variable", -id(node))  # the keys of declarations are positive
        value = self._children(node) if kind == n.COMPOUND_LITERAL else self._value(node)
        self._grow(place, value | {_FAR} if self.puns else value)
        if kind in (n.COMPOUND_LITERAL, n.CALL_EXPR):
            return frozenset({place})
        return frozenset({place, *(("variable", key) for key in variables(node))})

    def _element(self, node: Node) -> Places:
        base, index = node.children
        if base.shape != n.POINTER and index.shape == n.POINTER:
            base, index = index, base
        self._value(index)
        return self._value(base) if base.shape == n.POINTER else self._place(base)

    # ---- rvalues: what an expression may point to ----

    def _value(self, node: Node) -> Places:
        rule = _RULES.get(node.kind)
        if rule is not None:
            return rule(self, node)
        return self._unknown_expression(node)

    def _children(self, node: Node) -> Places:
        found = _NOWHERE
        for child in node.children:
            if n.is_expression(child.kind):
                found |= self._value(child)
            else:
                self._statement(child)
        return found

    def _nothing(self, node: Node) -> Places:
        return _NOWHERE

    def _read(self, node: Node) -> Places:
        if not self._is_lvalue(node):
            return self._children(node)
        places = self._place(node)
        return places if node.shape == n.ARRAY else self._load(places, node)

    def _unary(self, node: Node) -> Places:
        child = node.children[0]
        if node.operator == n.ADDRESS_OF:
            return self._place(child)
        if node.operator == n.DEREFERENCE:
            return self._read(node)
        if node.operator in n.INCREMENTS:
            places = self._place(child)
            value = self._load(places, node)
            self._store(places, _NOWHERE if node.shape == n.NUMBER else value)
            return value
        value = self._value(child)
        return _NOWHERE if node.operator == n.LOGICAL_NOT else value

    def _binary(self, node: Node) -> Places:
        left, right = node.children
        if node.operator == n.ASSIGN:
            value = self._value(right)
            self._store(self._place(left), value)
            return value
        first, second = self._value(left), self._value(right)
        if node.operator == n.COMMA:
            return second
        if node.operator in n.COMPARISONS:
            return _NOWHERE
        if node.shape == n.POINTER:  # pointer plus number: the number is no address
            return (first if left.shape == n.POINTER else _NOWHERE) | (
                second if right.shape == n.POINTER else _NOWHERE
            )
        if left.shape == n.POINTER and right.shape == n.POINTER:
            return _NOWHERE  # a distance
        return first | second

    def _compound(self, node: Node) -> Places:
        left, right = node.children
        value = self._value(right)
        places = self._place(left)
        old = self._load(places, left)
        if node.shape == n.POINTER:
            value = _NOWHERE
        self._store(places, value)
        return old | value

    def _conditional(self, node: Node) -> Places:
        condition, *branches = node.children
        self._value(condition)
        found = _NOWHERE
        for branch in branches:
            found |= self._value(branch)
        return found

    def _convert(self, node: Node) -> Places:
        if not node.children:
            return frozenset({_unknown(node)}) if node.shape == n.POINTER else _NOWHERE
        if len(node.children) > 1:
            return self._unknown_expression(node)
        child = node.children[0]
        if n.is_arrow(node):
            return self._load(self._value(child), node)
        value = self._value(child)
        if node.shape == n.BOOL and child.shape == n.POINTER:
            return _NOWHERE
        if node.shape == n.POINTER and child.shape not in (n.POINTER, n.ARRAY):
            if node.is_null or child.reference is not None:
                return _NOWHERE
            return value | {_unknown(node)}
        if node.shape == n.POINTER == child.shape and node.pointee != child.pointee:
            self._reinterpret(value, node, child)
        if child.shape == n.POINTER and node.shape in (n.NUMBER, n.VECTOR):
            self._escape(value, "its address is turned into a number")
        return value

    def _reinterpret(self, value: Places, node: Node, child: Node) -> None:
        """Note that a pointer of another type sees a variable, whose number may become a
        pointer."""
        if {node.pointee, child.pointee} <= {n.NUMBER, n.VECTOR, n.BOOL}:
            return
        for place in value:
            if place[0] == "variable":
                self._grow(place, frozenset({_FAR}))

    def _statement_expression(self, node: Node) -> Places:
        block = node.children[0] if node.children else None
        if block is None or not block.children:
            return _NOWHERE
        for statement in block.children[:-1]:
            self._statement(statement)
        last = block.children[-1]
        if n.is_expression(last.kind):
            return self._value(last)
        self._statement(last)
        return _NOWHERE

    def _unknown_expression(self, node: Node) -> Places:
        if node.kind == n.BLOCK_EXPR:
            self._havoc("blocks of code passed as values")
        value = self._children(node)
        self._escape(value, "used in an expression that is not understood")
        if node.shape in (n.NUMBER, n.VECTOR, n.VOID, n.BOOL):
            return _NOWHERE
        return value | {_unknown(node)}

    # ---- calls ----

    def _call(self, node: Node) -> Places:
        callee, *arguments = node.children
        target = called(callee)
        values = [self._value(argument) for argument in arguments]
        if target is None:
            self._havoc("a call through a function pointer")
            return frozenset({_FAR})
        if target.is_definition():
            return self._call_helper(self._function(target), values)
        return self._call_builtin(target.spelling, node, arguments, values)

    def _call_helper(self, function: Function, values: list[Places]) -> Places:
        for parameter, value in zip(function.parameters, values, strict=False):
            self._grow(("variable", parameter.key), value)
        for value in values[len(function.parameters) :]:
            self._escape(value, f"passed to {function.name} with variable arguments")
        return self.contents.get(function.result, _NOWHERE)

    def _call_builtin(
        self, name: str, node: Node, arguments: list[Node], values: list[Places]
    ) -> Places:
        if not any(values) and not any(argument.shape == n.POINTER for argument in arguments):
            return frozenset({_FAR}) if node.shape in (n.POINTER, n.RECORD) else _NOWHERE
        if builtins.returns_its_argument(name):
            return values[0]
        effects = builtins.effects(name, len(values))
        if effects is None:
            for argument, value in zip(arguments, values, strict=True):
                # Code behind an invisible declaration does not cast const away again.
                flags = "r" if argument.pointee_const else "rw"
                self._escape(value, f"passed to unknown function {name}", flags)
                if argument.shape == n.POINTER and _FAR in value:
                    self._touch(value, flags)
            everything = frozenset().union(*values)
            return everything | {_FAR} if node.shape not in (n.NUMBER, n.VECTOR) else _NOWHERE
        return self._apply(name, arguments, values, effects)

    def _apply(
        self, name: str, arguments: list[Node], values: list[Places], effects: tuple[str, ...]
    ) -> Places:
        """Apply a built-in of known effects. Values that it reads may go where it writes, or come
        out."""
        carried: set[Place] = set()
        for argument, value, flags in zip(arguments, values, effects, strict=True):
            if argument.shape != n.POINTER:
                self._escape(value, f"its address is passed to {name}")
                carried |= value
            elif "r" in flags:
                self._touch(value, "r")
                for place in value:
                    carried |= self.contents.get(place, _NOWHERE)
                    if builtins.copies(name) and place[0] != "variable":
                        carried.add(_FAR)
        for argument, value, flags in zip(arguments, values, effects, strict=True):
            if argument.shape == n.POINTER and "w" in flags:
                self._store(value, frozenset(carried))
        return frozenset(carried)


_RULES: dict[int, Callable[[_Walk, Node], Places]] = {
    n.DECL_REF_EXPR: _Walk._read,
    n.MEMBER_REF_EXPR: _Walk._read,
    n.ARRAY_SUBSCRIPT_EXPR: _Walk._read,
    n.STRING_LITERAL: _Walk._read,
    n.COMPOUND_LITERAL: _Walk._children,
    n.INIT_LIST: _Walk._children,
    n.PAREN_EXPR: _Walk._children,
    n.UNEXPOSED_EXPR: _Walk._convert,
    n.CAST_EXPR: _Walk._convert,
    n.UNARY_OPERATOR: _Walk._unary,
    n.BINARY_OPERATOR: _Walk._binary,
    n.COMPOUND_ASSIGNMENT: _Walk._compound,
    n.CONDITIONAL: _Walk._conditional,
    n.STATEMENT_EXPRESSION: _Walk._statement_expression,
    n.CALL_EXPR: _Walk._call,
    n.SIZEOF_EXPR: _Walk._nothing,  # its operand is not evaluated
    n.INTEGER_LITERAL: _Walk._nothing,
    n.FLOATING_LITERAL: _Walk._nothing,
    n.CHARACTER_LITERAL: _Walk._nothing,
}


def _unknown(node: Node) -> Place:
    """Return the place that a pointer of unknown origin points to."""
    near = node.shape == n.POINTER and node.pointee_space in (n.LOCAL, n.PRIVATE)
    return _NEAR if near else _FAR


def variables(node: Node) -> set[int]:
    """Return the variables that an expression names."""
    found = {node.key} if node.kind == n.DECL_REF_EXPR and node.reference is None else set()
    return found.union(*(variables(child) for child in node.children)) - {0}


def called(callee: Node) -> Cursor | None:
    """Return the function that a call names, or None."""
    while callee.kind in (n.UNEXPOSED_EXPR, n.PAREN_EXPR) and len(callee.children) == 1:
        callee = callee.children[0]
    return callee.reference if callee.kind == n.DECL_REF_EXPR else None
