"""Meetings: where work-items of a group wait for each other, in barriers and group functions.

Input: the functions of a kernel as nodes, and in order, the functions and loops that a walk enters.
Output: whether a condition decides which work-items come to such a place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from acs_cl.opencl_c.modes import bodies, builtins
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node

_LOOPS = frozenset({n.FOR, n.WHILE, n.DO})
_OF_LOOPS = frozenset({n.BREAK, n.CONTINUE})
_JUMPS = _OF_LOOPS | {n.RETURN_STMT}


class Meetings:
    """Tells where work-items of a group wait for each other."""

    def __init__(self, functions: Mapping[int, bodies.Function]) -> None:
        self.functions = functions
        self.around = [False]  # whether they do in the open function, and in each open loop of it
        self.known: dict[int, bool] = {}  # by function
        self._below_node: dict[Node, bool] = {}
        """Loops inside of loops ask for the same nodes."""

    @contextmanager
    def function(self, body: Sequence[Node]) -> Iterator[None]:
        """Enter a function, and leave it."""
        outer, self.around = self.around, [self._below(body)]
        yield
        self.around = outer

    @contextmanager
    def loop(self, parts: Sequence[Node]) -> Iterator[None]:
        """Enter a loop of the open function, and leave it."""
        self.around.append(self.around[0] and self._below(parts))
        yield
        self.around.pop()

    def decided(self, nodes: Sequence[Node], is_loop: bool = False) -> bool:
        """Tell whether the condition of these nodes decides which work-items do so: below them, or
        behind them, if one may leave the function or the loop there."""
        if not self.around[0]:
            return False
        if self._below(nodes):
            return True
        of_loop = (n.BREAK, n.CONTINUE) if self.around[-1] and not is_loop else ()
        return any(has_jump(node, (n.RETURN_STMT,), of_loop) for node in nodes)

    def _below(self, nodes: Sequence[Node]) -> bool:
        return any(map(self._is_below, nodes))

    def _is_below(self, node: Node) -> bool:
        if node not in self._below_node:
            self._below_node[node] = self._calls(node) or self._below(node.children)
        return self._below_node[node]

    def _calls(self, node: Node) -> bool:
        target = bodies.called(node.children[0]) if node.kind == n.CALL_EXPR else None
        if target is None:
            return False
        if not target.is_definition():
            return builtins.meets(target.spelling)
        key = n.identity(target)
        if key not in self.known:
            self.known[key] = False  # if it calls itself, there is no outline
            function = self.functions.get(key)
            self.known[key] = function is not None and self._below(function.body)
        return self.known[key]


def has_jump(node: Node, of_function: Collection[int], of_loop: Collection[int]) -> bool:
    """Tell whether there is a jump below a node: of a kind that leaves the function, or of a kind
    that ends a turn of the loop around the node."""
    found = _jumps(node)
    return not found.isdisjoint(of_function) or not found.isdisjoint(of_loop)


def _jumps(node: Node) -> frozenset[int]:
    """Return the kinds of jumps below a node that leave it. They stay with the node."""
    if node.jumps is None:
        found = frozenset[int]().union(*map(_jumps, node.children))
        if node.kind in _LOOPS:
            found -= _OF_LOOPS
        if node.kind == n.FOR:  # what comes before a loop is in the one around it
            found |= _jumps(node.children[0])
        node.jumps = found | {node.kind} if node.kind in _JUMPS else found
    return node.jumps
