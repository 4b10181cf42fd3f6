"""Variables whose address is taken, or that may change in a way that is not followed.

Input: a statement of a function. Output: keys of variables. Invariant: any other one only changes
where it, or a part of it, is assigned by name.
"""

from __future__ import annotations

from acs_cl.opencl_c.modes import bodies
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node


def collect(node: Node, found: set[int], changed: set[int]) -> None:
    """Collect the variables whose address is taken below a node, or that may be what it changes
    where the place is not understood, as in `_Generic(n, int: k) = 1`. `changed`: gets those that
    are assigned by name."""
    is_address = node.kind == n.UNARY_OPERATOR and node.operator == n.ADDRESS_OF
    if is_address or _is_array_as_pointer(node):
        _roots(node.children[0], found, True)
    elif n.assigns(node.kind, node.operator):
        _roots(node.children[0], found, False)
        _roots(node.children[0], changed, True)
    for child in node.children:
        if node.kind == n.ARRAY_SUBSCRIPT_EXPR and _is_array_as_pointer(child):
            child = child.children[0]  # an element is a part of the variable
        collect(child, found, changed)


def array_of(base: Node) -> Node:
    """Return the array or the vector that a subscript is for, if the base is one."""
    return base.children[0] if _is_array_as_pointer(base) else base


def _is_array_as_pointer(node: Node) -> bool:
    return (
        node.kind in (n.UNEXPOSED_EXPR, n.CAST_EXPR)
        and node.shape == n.POINTER
        and len(node.children) == 1
        and node.children[0].shape == n.ARRAY
    )


def _roots(place: Node, found: set[int], is_taken: bool) -> None:
    """Collect the variable that an lvalue is a part of, if `is_taken`, or all that are named in it,
    if it is not understood."""
    while place.kind in (n.PAREN_EXPR, n.UNEXPOSED_EXPR) and len(place.children) == 1:
        place = place.children[0]
    kind, children = place.kind, place.children
    if kind == n.DECL_REF_EXPR:
        if is_taken:
            found.add(place.key)
    elif kind == n.MEMBER_REF_EXPR:
        if children and children[0].shape != n.POINTER:
            _roots(children[0], found, is_taken)
    elif kind == n.ARRAY_SUBSCRIPT_EXPR:
        for child in children:
            if array_of(child).shape in (n.ARRAY, n.VECTOR):
                _roots(array_of(child), found, is_taken)
    elif kind == n.COMPOUND_LITERAL or (
        kind == n.UNARY_OPERATOR and place.operator == n.DEREFERENCE
    ):
        pass
    else:
        found.update(bodies.variables(place))
