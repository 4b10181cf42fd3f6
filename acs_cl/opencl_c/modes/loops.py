"""Loops: what each turn does, what it assigns, and what it counts with.

Input: the reading, and a loop. Output: an operation of the outline. Invariant: what it says of a
loop holds in every turn; where that is not known, the loop ends early, or at any time.
"""

from __future__ import annotations

from collections.abc import Sequence

from acs_cl.opencl_c.modes import counters
from acs_cl.opencl_c.modes.meetings import has_jump
from acs_cl.opencl_c.modes.reading import Reading
from acs_cl.opencl_c.modes.values import NOTHING, has_effect, truth
from acs_cl.opencl_c.outlines import Made
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.nodes import Node

_NO_NUMBER = -1
"""Instead of a loop's number: it may end early."""
_OF_LOOP = (n.BREAK, n.CONTINUE)


def for_loop(reading: Reading, node: Node) -> Made:
    """Return what `for` does."""
    parts = node.children
    if len(parts) != 4:  # it is not known which part is missing
        is_first = len(parts) == 3 and parts[0].kind == n.DECL_STMT
        first = reading.statement(parts[0]) if is_first else NOTHING
        return [",", first, _any_order(reading, parts[is_first:])]
    first = reading.statement(parts[0])
    condition, step = (None if one.kind == n.NULL_STMT else one for one in parts[1:3])
    return [",", first, loop(reading, condition, parts[3], step)]


def loop(reading: Reading, condition: Node | None, body: Node, step: Node | None) -> Made:
    """Return what a loop does that begins with its condition."""
    reading.begin_assigned()
    parts = [one for one in (condition, body, step) if one is not None]
    name = "loop met" if reading.meetings.decided(parts, is_loop=True) else "loop"
    end = _leading_end(body) if condition is None or condition.literal else None
    statements = [body]
    if end is not None:
        statements = body.children[1:]
        test: Made = ["!", truth(end, reading.value(end))]
    elif condition is None:
        test = ["k", 1]
    else:
        test = truth(condition, reading.value(condition))
    with reading.meetings.loop(parts):
        inside = reading.statements(statements)
    after = reading.value(step) if step is not None else NOTHING
    assigned = reading.end_assigned()
    made = counters.assignments([test, inside, after])
    first = []
    for one in counters.sure(test):  # `i-- > 0`: the body begins with what it does
        rest = counters.replaced(test, one, NOTHING)
        if one[0] == "post" and made[one[1]] == 1 and one[1] not in counters.reads(rest):
            test = counters.replaced(test, one, ["s", one[1]])
            first.append(["=", *one[1:]])
    others = [one for one in (condition, step) if one is not None]
    is_left = any(has_jump(one, (n.RETURN_STMT,), _OF_LOOP) for one in others)
    may_break = any(has_jump(one, (), (n.BREAK,)) for one in statements)
    if end is None and (condition is None or condition.literal):
        again = _goes_on(reading, test, body, [*inside, after])
        if again is not test:  # it only ends behind a part of a turn
            name = name.replace("loop", "do")
            made_turn = [name, assigned, again, [*inside, after], NOTHING]
            return _repeated(reading, made_turn, body, others)
    always = first if has_jump(body, (), (n.CONTINUE,)) else first + inside
    found = counters.counters(reading.types, made, always, after, may_break)
    is_plain = end is None and not first and not has_jump(body, (n.RETURN_STMT,), (n.BREAK,))
    if is_left:  # by a jump in `({ ... })`
        found, is_plain = [], False
    number = reading.new_loop() if is_plain else _NO_NUMBER
    return [name, assigned, _compared(test), first + inside, after, found, number]


def do_loop(reading: Reading, node: Node) -> Made:
    """Return what `do` does."""
    body, condition = node.children
    reading.begin_assigned()
    parts = [body, condition]
    name = "do met" if reading.meetings.decided(parts, is_loop=True) else "do"
    with reading.meetings.loop(parts):
        inside = reading.statements([body])
    test = truth(condition, reading.value(condition))
    assigned = reading.end_assigned()
    made = counters.assignments([inside, test])
    again = test
    for one in counters.sure(test):  # `--i > 0`: what it is when the next turn begins
        if one[0] == "=" and made[one[1]] == 1:
            again = counters.replaced(again, one, ["s", one[1]])
    again = ["?", 32] if has_effect(again) else _compared(again)
    again = _goes_on(reading, again, body, [*inside, test])
    return _repeated(reading, [name, assigned, again, inside, test], body, [condition])


def _repeated(reading: Reading, made: Made, body: Node, others: Sequence[Node]) -> Made:
    """Return a loop whose first turn asks for no condition, with its counters. `others`: what
    each turn does besides the body."""
    if any(has_jump(one, (n.RETURN_STMT,), _OF_LOOP) for one in others):
        return [*made, [], _NO_NUMBER]
    _, _, _, inside, test = made
    always = [] if has_jump(body, (), (n.CONTINUE,)) else inside
    may_break = has_jump(body, (), (n.BREAK,))
    assigned = counters.assignments([inside, test])
    found = counters.counters(reading.types, assigned, always, test, may_break)
    return [*made, found, _NO_NUMBER]


def _goes_on(reading: Reading, condition: Made, body: Node, turn: list[Made]) -> Made:
    """Return the condition of the next turn, with what the ends in a body say. `turn`: what a turn
    does."""
    if has_jump(body, (), (n.CONTINUE,)):
        return condition
    for end in counters.ends(reading.types, turn):
        condition = ["and", condition, ["!", end]]
    return condition


def _any_order(reading: Reading, parts: Sequence[Node]) -> Made:
    """Return an operation for parts that run any number of times in any state."""
    reading.begin_assigned()
    with reading.meetings.loop(parts):
        inside = [reading.statements([part]) for part in parts]
    assigned = reading.end_assigned()
    body: list[Made] = []
    for operations in inside:
        body += [["again", assigned], *operations]
    return ["loop", assigned, ["?", 32], body, NOTHING, [], _NO_NUMBER]


def _leading_end(body: Node) -> Node | None:
    """Return the condition of the `if (...) break;` that a body begins with."""
    if body.kind != n.COMPOUND or not body.children or body.children[0].kind != n.IF:
        return None
    condition, *branches = body.children[0].children
    branch = branches[0]
    if branch.kind == n.COMPOUND and len(branch.children) == 1:
        branch = branch.children[0]
    return condition if len(branches) == 1 and branch.kind == n.BREAK else None


def _compared(condition: Made) -> Made:
    """Return a condition as a comparison, if it is a variable."""
    return ["cmp", "!=", condition, ["k", 0]] if condition[0] == "s" else condition
