"""Kernels as functions that another kernel calls: the parts of a scheduler on the device.

Input: the source of one program, its build options, a device, a prefix for all its names. Output:
`Functions`: one text, and for each kernel the entry to call, the packing of its arguments and its
needs. Kernels that cannot become functions have a reason. Invariant: an entry is called for every
item of a launch, with the item's identity in the context. It computes the same bits as the kernel.
The text shares no name with another program's text.

Texts do not have the prefix before the end (`translated`).
"""

# Long because: the steps that turn a kernel into a function are one sequence.

from __future__ import annotations

import re
from collections.abc import Iterable

import pyopencl as cl

from acs_cl.devices.facts import BuildOptions, options_for_code
from acs_cl.opencl_c.functions import edits, spawns, translated
from acs_cl.opencl_c.functions.blob import Blob, blob_of, entry
from acs_cl.opencl_c.functions.survey import About, Survey
from acs_cl.opencl_c.functions.translated import MARK, CannotTranslate, Function, Functions
from acs_cl.opencl_c.kernel_files import kernel_source
from acs_cl.opencl_c.modes.builtins import meets
from acs_cl.opencl_c.parse import clang
from acs_cl.opencl_c.parse.nodes import TOO_DEEP
from acs_cl.opencl_c.parse.preprocess import IDLE_PRAGMAS, plain_unit
from acs_cl.opencl_c.parse.tokens import Tokens, plain

__all__ = ["CannotTranslate", "Function", "Functions", "translate"]

_RESERVED = re.compile(r"ACS_\w+$|acs_(ctx|arena|blob|i|v\d+|context|[lc]_\w+|get_\w+|PREFIX_\w*)$")
_AS_A_GROUP = frozenset(
    {"get_local_id", "get_group_id", "get_local_size", "get_num_groups", "get_local_linear_id",
     "get_enqueued_local_size"}
)  # fmt: skip
_BRIEF_PRAGMA = re.compile(rf"OPENCL\b|STDC\s+FP_CONTRACT\b|{IDLE_PRAGMAS}")
"""Pragmas at the top of a program that mean nothing to the next one, or are taken back."""
_DISABLES = re.compile(r"#\s*pragma\s+OPENCL\s+EXTENSION\b.*\bdisable\b")


def translate(
    source: str, options: BuildOptions, device: cl.Device | None, prefix: str
) -> Functions:
    """Translate the kernels of a source into functions. `prefix` is an identifier. Raises
    `CannotParse` or `CannotTranslate` for the source as a whole."""
    found = translated.load(source, options, device, prefix)
    if found is not None:
        return found
    with clang.LOCK:
        try:
            found = _translate(source, clang.split_options(options), device)
        except TOO_DEEP:
            raise CannotTranslate("expressions nested too deeply") from None
    translated.store(found, source, options, device)
    return translated.with_prefix(found, prefix)


def _translate(source: str, words: list[str], device: cl.Device | None) -> Functions:
    options = options_for_code(words)
    text = plain(plain_unit(source, words, device).text)
    try:
        return _edit(text, options, device, constants=True)
    except clang.CannotParse:
        # A pointer cannot lead to an argument and to a constant of the program.
        return _edit(text, options, device, constants=False)


def _edit(text: str, options: list[str], device: cl.Device | None, constants: bool) -> Functions:
    """Translate a preprocessed text. With `constants`, `__constant` arguments are read as
    `__global` ones, which may make a text that does not parse."""
    unit = clang.parse(text, options, device)
    tokens, survey = Tokens(text), Survey(unit)
    reserved = {token.text for token in tokens.all if _RESERVED.match(token.text)}
    if reserved:
        raise CannotTranslate(f"the source uses the reserved name {min(reserved)}")
    for pragma in edits.pragmas(tokens):
        if not _BRIEF_PRAGMA.match(pragma):
            raise CannotTranslate(f"the pragma {pragma} would hold for other programs, too")
    reached = {name: _reach(survey, name) for name in survey.functions}
    blobs, reasons = _sort_out(survey, reached, constants)
    globally: set[str] = set().union(*(reached[k] for k, blob in blobs.items() if blob.constants))
    wanted: set[str] = set().union(*(reached[name] for name in blobs))
    children, sites, loops = spawns.children(tokens, survey, reached, MARK)
    context, arena = _needs(survey, reached, _spawning(tokens, survey, sites))
    edits.rename(tokens, survey, MARK)
    edits.give_context(tokens, survey, context, arena)
    local_bytes, hoisted = _hoist(tokens, survey, reached, wanted)
    for site in sites:
        spawns.offer(tokens, site, MARK)
    out = "\n".join(child.offer for child in children.values())
    out += _text(tokens, survey, wanted, hoisted, globally)
    for name in sorted(wanted & set(children)):
        handed = edits.words_for(name, context, arena, declared=False)
        out += "\n" + children[name].entry.replace("{handed}", handed and f"{handed}, ")
    functions = {}
    for kernel, blob in blobs.items():
        symbol = f"{MARK}acs_entry_{kernel}"
        handed = edits.words_for(kernel, context, arena, declared=False)
        out += "\n" + entry(symbol, MARK + kernel, blob, handed)
        spawned = tuple(
            spawns.symbol_of(name, MARK) for name in sorted(reached[kernel] & set(children))
        )
        why = tuple(f"{name} {loops[name]}" for name in sorted(reached[kernel] & set(loops)))
        found = _function(survey, kernel, symbol, blob, reached, local_bytes)
        functions[kernel] = found._replace(children=spawned, loops=why)
    out = _restore_pragmas(out + "\n")
    if functions:
        clang.parse(kernel_source("context.h") + out, options, device)
    return Functions(out, functions, reasons, tuple(options))


# ---- calls ----


def _reach(survey: Survey, name: str) -> set[str]:
    """Return all functions that one may call, itself included."""
    found, new = {name}, [name]
    while new:
        for other in survey.functions[new.pop()].calls - found:
            found.add(other)
            new.append(other)
    return found


def _sort_out(
    survey: Survey, reached: dict[str, set[str]], constants: bool
) -> tuple[dict[str, Blob], dict[str, str]]:
    """Return the packed arguments of kernels that can be called, and reasons for the others."""
    blobs: dict[str, Blob] = {}
    reasons: dict[str, str] = {}
    recursive = {n for n, about in survey.functions.items() if any(
        n in reached[called] for called in about.calls)}  # fmt: skip
    for name, about in survey.functions.items():
        if not about.kernel:
            continue
        for other in sorted(reached[name], key=lambda other: (other != name, other)):
            reason = survey.functions[other].reason or (
                "calls itself" if other in recursive else ""
            )
            if reason:
                reasons[name] = reason if other == name else f"{reason} (in {other})"
                break
        else:
            try:
                blobs[name] = blob_of(about.definition, MARK, survey.names, constants)
            except CannotTranslate as failed:
                reasons[name] = failed.reason
    return blobs, reasons


def _spawning(tokens: Tokens, survey: Survey, sites: list[spawns.Site]) -> set[str]:
    """Return the functions that spawn items."""
    places = [tokens.all[site.bound[0]].at for site in sites]
    return {
        name
        for name, about in survey.functions.items()
        for extent in [about.definition.extent]
        if any(extent.start.offset <= at < extent.end.offset for at in places)
    }


def _needs(
    survey: Survey, reached: dict[str, set[str]], spawning: set[str]
) -> tuple[set[str], set[str]]:
    """Return the functions that need the context, and the ones that need the arena."""
    asks = {n for n, about in survey.functions.items() if about.builtins & edits.IDENTITY}
    asks |= spawning
    keeps = {n for n, about in survey.functions.items() if about.locals}
    return (
        {name for name, others in reached.items() if others & asks},
        {name for name, others in reached.items() if others & keeps},
    )


# ---- the text ----


def _hoist(
    tokens: Tokens, survey: Survey, reached: dict[str, set[str]], wanted: set[str]
) -> tuple[dict[str, int], dict[str, str]]:
    """Return the end of each function's arena, and the text to put before each function."""
    ends: dict[str, int] = {}  # of functions' own variables
    before: dict[str, str] = {}
    # Called functions come first: their variables are below those of their callers.
    for name in sorted(wanted, key=lambda name: (len(reached[name]), name)):
        about = survey.functions[name]
        # one work-item may be in the next function while another one still reads in this one
        together = set().union(*(reached[other] for other in wanted if name in reached[other]))
        start = max((end for other, end in ends.items() if other in together), default=0)
        if about.locals:
            ends[name] = edits.hoist_locals(tokens, about, start)
        before[name] = edits.hoist_constants(tokens, about, MARK)
    arenas = {
        name: max((ends[other] for other in reached[name] if other in ends), default=0)
        for name in wanted
    }
    return arenas, before


def _text(
    tokens: Tokens, survey: Survey, wanted: set[str], hoisted: dict[str, str], globally: set[str]
) -> str:
    """Return the edited declarations that the wanted functions need."""
    pieces = []
    used = wanted.union(*(survey.functions[name].builtins for name in wanted))
    for begin, end in edits.chunks(tokens, survey.ends):
        if _DISABLES.match(tokens.all[begin].text):  # it would also apply to the next program
            continue
        offsets = [token.at for token in tokens.all[begin:end]]
        names = {survey.declared[at] for at in offsets if at in survey.declared}
        own = names & set(survey.functions)
        if (names and not names & used) or survey.unsuitable.intersection(offsets):
            continue
        words = ""
        if own & globally:
            edits.read_globally(tokens, begin, end, _constants(survey, own))
        if own:
            kernel = any(survey.functions[name].kernel for name in own)
            words = edits.make_function(tokens, begin, end, kernel)
            if offsets[-1] + 1 in survey.ends:
                words = "".join(hoisted[name] for name in sorted(own)) + words
        pieces.append(words + tokens.render(begin, end))
    return "\n".join(pieces)


def _constants(survey: Survey, names: set[str]) -> list[tuple[int, int]]:
    return [
        variable.statement
        for name in names
        for variable in survey.functions[name].constants.values()
    ]


def _restore_pragmas(text: str) -> str:
    """Restore pragmas at the end, so that they do not apply to the next program."""
    if "FP_CONTRACT" in text:
        text += "#pragma OPENCL FP_CONTRACT DEFAULT\n"
    if re.search(r"#\s*pragma\s+pack", text):
        text += "#pragma pack()\n"
    return text


def _function(
    survey: Survey, kernel: str, symbol: str, blob: Blob, reached: dict[str, set[str]],
    local_bytes: dict[str, int],
) -> Function:  # fmt: skip
    abouts: Iterable[About] = [survey.functions[name] for name in reached[kernel]]
    builtins: set[str] = set().union(*(about.builtins for about in abouts))
    barriers = any(map(meets, builtins))
    group = clang.required_group(survey.functions[kernel].definition)
    has_local = local_bytes[kernel] > 0 or any(field.kind == "local" for field in blob.fields)
    return Function(
        kernel, symbol, blob.fields, blob.bytes, local_bytes[kernel], barriers,
        group, not (barriers or has_local or builtins & _AS_A_GROUP),
    )  # fmt: skip
