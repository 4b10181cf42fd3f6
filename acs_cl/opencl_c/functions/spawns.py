"""Spawned items: the places where a program spawns, and the functions that run the items.

Input: tokens and the survey of a preprocessed source, in which `ACS_SPAWN` has become its loop.
Output: that loop, whose bound goes through a function. This may offer the items to the scheduler,
and returns how many are left for the loop: none, or all. Invariant: an item gets what the loop
would give it. If that cannot be shown, the loop stays as it is, with a reason.

`<symbol>_number` is a macro: the number of the function in the scheduler. Nothing is offered where
it is not defined.
"""

from __future__ import annotations

from collections.abc import Sequence

from acs_cl.opencl_c.functions.blob import measure, type_name
from acs_cl.opencl_c.functions.edits import IDENTITY
from acs_cl.opencl_c.functions.survey import Survey
from acs_cl.opencl_c.functions.translated import CannotTranslate
from acs_cl.opencl_c.modes import builtins
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.tokens import Tokens

from ...records import NamedTuple

MOST_BYTES = 48
"""Most bytes of a child's arguments."""

_BEHIND_N = [";", "acs_child", "<", "acs_children", ";", "+", "+", "acs_child", ")"]
_PLAIN = frozenset("().+-*/%&|^~<>!?:,")
_OF_THE_LOOP = frozenset({"acs_child", "acs_children"})


class Site(NamedTuple):
    """A place where items are spawned, as positions of tokens."""

    function: str
    bound: tuple[int, int]
    """The brackets round the number of items."""
    arguments: tuple[tuple[int, int], ...]
    """Beginning and end of each argument behind the item."""


class Child(NamedTuple):
    """A function whose items are spawned."""

    offer: str
    """The text of the function that offers the items."""
    entry: str
    """The text of the function that runs the items of a lane."""


def sites(tokens: Tokens) -> list[Site]:
    """Return all places where a source spawns items."""
    found = []
    for position, token in enumerate(tokens.all):
        if token.text != "acs_children" or not tokens.is_at(position + 1, "="):
            continue
        begin = position + 2
        end = tokens.closing(begin)
        call = end + len(_BEHIND_N) + 1
        if [one.text for one in tokens.all[end + 1 : call]] != _BEHIND_N:
            continue
        if not (tokens.is_at(call + 1, "(") and tokens.is_at(call + 2, "acs_child")):
            continue
        last = tokens.closing(call + 1)
        commas = [at for at in tokens.outer(call + 2, last) if tokens.is_at(at, ",")]
        ends = [*commas[1:], last]
        arguments = tuple((a + 1, b) for a, b in zip(commas, ends, strict=bool(commas)))
        found.append(Site(tokens.all[call].text, (begin, end), arguments))
    return found


def children(
    tokens: Tokens, survey: Survey, reached: dict[str, set[str]], prefix: str
) -> tuple[dict[str, Child], list[Site], dict[str, str]]:
    """Return the functions whose items can be spawned, the places of their spawns, and the reasons
    why the other functions are loops."""
    found: dict[str, Child] = {}
    kept: list[Site] = []
    reasons: dict[str, str] = {}
    for site in sites(tokens):
        name = site.function
        try:
            if name not in survey.functions:
                raise CannotTranslate("is not a function of the source")
            if name not in found:
                _check(survey, reached, name)
                found[name] = _child(survey, name, prefix)
            for begin, end in site.arguments:
                _check_argument(tokens, begin, end)
        except CannotTranslate as why:
            reasons.setdefault(name, why.reason)
        else:
            kept.append(site)
    used = {site.function for site in kept}
    return {name: child for name, child in found.items() if name in used}, kept, reasons


def offer(tokens: Tokens, site: Site, prefix: str) -> None:
    """Pass the number of items through the function that offers them. This is the last edit."""
    begin, end = site.bound
    pointers = [tokens.render(*argument) for argument in site.arguments]
    symbol = f"{prefix}acs_offer_{site.function}"
    tokens.insert(begin - 1, f" {symbol}(ACS_PASS, ")
    tokens.insert(end, f", {', '.join(pointers)})")


def symbol_of(function: str, prefix: str) -> str:
    """Return the name of the entry that runs an item."""
    return f"{prefix}acs_child_{function}"


def _check(survey: Survey, reached: dict[str, set[str]], name: str) -> None:
    about = survey.functions[name]
    if about.kernel:
        raise CannotTranslate("is a kernel")
    if about.definitions > 1:
        raise CannotTranslate("is overloaded")
    for other in sorted(reached[name]):
        below = survey.functions[other]
        if below.reason:
            raise CannotTranslate(below.reason)
        if name in below.calls:
            raise CannotTranslate("calls itself")
        if below.builtins & IDENTITY:
            raise CannotTranslate("asks who the work-item is")
        if below.locals or any(map(builtins.meets, below.builtins)):
            raise CannotTranslate("works with other items of its group")


def _child(survey: Survey, name: str, prefix: str) -> Child:
    """Return how the arguments of a function are kept until its items run."""
    parameters = n.parameters_of(survey.functions[name].definition)
    item = parameters[0].type.get_canonical() if parameters else None
    if item is None or n.shape_of(item) != n.NUMBER or item.get_size() != 4:
        raise CannotTranslate("does not take its item as a uint first")
    end, given, puts, gets = 0, [], [], []
    for number, cursor in enumerate(parameters[1:]):
        kind, size, alignment = measure(cursor)
        at = -(-end // alignment) * alignment
        end = at + size
        if kind == "pointer":
            given.append(f"const volatile __global void *a{number}")
            puts.append(f"*(__global ulong *)(acs_to + {at}) = (ulong)a{number};")
            gets.append(
                f"__global void *a{number} ="
                f" (__global void *)*(const __global ulong *)(acs_from + {at});"
            )
            continue
        canonical = cursor.type.get_canonical()
        if kind != "value" or n.shape_of(canonical) not in (n.NUMBER, n.BOOL, n.VECTOR):
            raise CannotTranslate(f"argument {cursor.spelling} is not a number or global memory")
        if size > alignment:
            raise CannotTranslate(f"argument {cursor.spelling} is a vector of more than 16 bytes")
        spelled = type_name(canonical, prefix, survey.names)
        given.append(f"{spelled} a{number}")
        puts.append(f"*(__global {spelled} *)(acs_to + {at}) = a{number};")
        gets.append(f"const {spelled} a{number} = *(const __global {spelled} *)(acs_from + {at});")
    if end > MOST_BYTES:
        raise CannotTranslate(f"takes {end} bytes of arguments, more than {MOST_BYTES}")
    return Child(_offer_text(name, given, puts, prefix), _entry_text(name, gets, prefix))


def _offer_text(name: str, given: Sequence[str], puts: Sequence[str], prefix: str) -> str:
    lines = "\n".join(f"    {line}" for line in puts)
    return (
        f"static uint {prefix}acs_offer_{name}(ACS_CONTEXT, uint n, {', '.join(given)}) {{\n"
        f"#ifdef {symbol_of(name, prefix)}_number\n"
        f"    __global uchar *acs_to = acs_offer(ACS_PASS, {symbol_of(name, prefix)}_number, n);\n"
        f"    if (!acs_to)\n        return n;\n{lines}\n    return 0u;\n"
        "#else\n    return n;\n#endif\n}\n"
    )


def _entry_text(name: str, gets: Sequence[str], prefix: str) -> str:
    # {handed}: words before the function's own arguments, filled in once they are known
    lines = "\n".join(f"    {line}" for line in gets)
    arguments = ", ".join(f"a{number}" for number in range(len(gets)))
    return (
        f"static void {symbol_of(name, prefix)}(ACS_CONTEXT, const __global uchar *acs_from,"
        f" uint acs_item, uint acs_end, uint acs_step) {{\n{lines}\n"
        "    for (; acs_item < acs_end; acs_item += acs_step)\n"
        f"        {prefix}{name}({{handed}}acs_item, {arguments});\n}}\n"
    )


def _check_argument(tokens: Tokens, begin: int, end: int) -> None:
    """Check that an argument keeps its value and is the same for all items: it is made of names,
    numbers, and sums of these."""
    before = ""
    for position in range(begin, end):
        kind, text = tokens.all[position].kind, tokens.all[position].text
        if text in _OF_THE_LOOP:
            raise CannotTranslate("an argument is another one for each item")
        is_operand = kind in ("name", "number")
        reads = text in "*&" and not (before and (before[-1].isalnum() or before[-1] == "_"))
        calls = text == "(" and bool(before) and (before[-1].isalnum() or before[-1] == "_")
        twice = text in "+-" and before == text
        if not (is_operand or text in _PLAIN) or reads or calls or twice:
            raise CannotTranslate("an argument is more than names and numbers")
        before = text
