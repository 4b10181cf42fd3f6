"""Preprocess a source: expand its macros and conditions, so that byte offsets are those of the
text.

Input: a source, its build options, a device. Output: the same program as a parsed unit, without
directives except pragmas. Invariant: the text means the same as the source, declaration by
declaration. If the parser sees a difference, the source is refused. Macros that only the device's
compiler can expand (its constants, `as_type`) stay as they are written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, OrderedDict

import pyopencl as cl

from acs_cl.devices.facts import BuildOptions
from acs_cl.opencl_c.parse import clang, names
from acs_cl.opencl_c.parse import nodes as n
from acs_cl.opencl_c.parse.clang import CannotParse
from acs_cl.opencl_c.parse.environment import Environment
from acs_cl.opencl_c.parse.reader import Reader, new_reader
from acs_cl.opencl_c.parse.tree import Cursor

from ...records import NamedTuple

IDLE_PRAGMAS = r"pack\b|once\b|message\b|(end)?region\b|mark\b|(GCC|clang)[ \t]+diagnostic\b"
"""Pragmas that change nothing of what functions compute."""
_PLAIN_KEPT = 8
_OWN_NAME = re.compile(r"\b__(?:func|FUNCTION|PRETTY_FUNCTION)__\b")
_JOINED_TOKENS = frozenset({"++", "--", "&&", "/*", "//"})
_PLACE = re.compile(r" at [^()]*:\d+:\d+\)")


class Plain(NamedTuple):
    """A source without directives."""

    unit: clang.Unit  # its top undefines the macros of the options
    text: str
    words: Counter[str]  # count of each name in it
    included: tuple[str, ...]


_plain: OrderedDict[tuple[object, ...], Plain] = OrderedDict()


def unit_with(
    source: str, options: BuildOptions, device: cl.Device | None, kernel: str
) -> clang.Unit:
    """Return the preprocessed source, parsed, with no other kernel than `kernel`. It is built with
    the same options. Raises `CannotParse`, also if there is no such kernel."""
    plain = plain_of(source, options, device)
    if kernel not in plain.unit.kernels:
        raise CannotParse(f"the source has no kernel {kernel}")
    rest = _without_kernels(plain, kernel)
    return plain.unit if rest == plain.unit.source else clang.parse(rest, options, device)


def is_named(source: str, options: BuildOptions, device: cl.Device | None, kernel: str) -> bool:
    """Tell whether anything in the preprocessed source names a kernel besides its definition."""
    return plain_of(source, options, device).words[kernel] > 1


def plain_of(source: str, options: BuildOptions, device: cl.Device | None) -> Plain:
    """Do the work of `plain_unit`, and keep the last results."""
    key = (source, tuple(clang.split_options(options)), device)
    plain = _plain.pop(key, None) or plain_unit(source, options, device)
    if not plain.included:  # included files may change
        _plain[key] = plain
        if len(_plain) > _PLAIN_KEPT:
            _plain.popitem(last=False)
    return plain


def plain_unit(source: str, options: BuildOptions, device: cl.Device | None) -> Plain:
    """Expand the macros and conditions of a source. Raises `CannotParse`."""
    original = clang.parse(source, options, device)
    text, defined, made = preprocess(source, options, original.environment)
    found = _OWN_NAME.search(text)
    if found:
        raise CannotParse(f"the source uses {found[0]}, and a variant has another name")
    words = Counter(names.WORD.findall(text))
    _refuse_meant_otherwise(original.environment, made, words)
    # the definitions of the options are expanded already
    unit = clang.parse("".join(f"#undef {n}\n" for n in defined) + text, options, device)
    if _declared(unit) != _declared(original):
        raise CannotParse("preprocessing makes another program of the source")
    return Plain(unit, text, words, original.included)


def _refuse_meant_otherwise(environment: Environment, made: set[str], words: Counter[str]) -> None:
    """Refuse a source that redefines names of the compiler's macros: in the text they would have
    the compiler's meaning."""
    made = made.intersection(words)
    if made:
        environment.ask(names.Asked(tested=frozenset(made)))
        for name in sorted(made):
            if environment.macros.get(name) is not None:
                raise CannotParse(f"the source defines the compiler's macro {name} anew")


def _declared(unit: clang.Unit) -> list[str]:
    """Return all declarations of a unit, as the parser prints them, without their places."""
    own = (cursor for cursor in unit.top if not clang.is_of_prelude(cursor))
    return [_PLACE.sub(")", clang.printed(cursor)) for cursor in own]


def _without_kernels(plain: Plain, kept: str) -> str:
    """Return its text without the kernels that nothing in it names, except one. Directives between
    them stay, and those inside of them go."""
    unit = plain.unit
    pieces: list[bytes] = []
    at = 0
    for name, cursor in sorted(unit.kernels.items(), key=lambda one: one[1].extent.start.offset):
        if name == kept or plain.words[name] > 1:
            continue
        begin, end = start_of(unit, cursor), cursor.extent.end.offset
        lines = unit.data[begin : n.body_of(cursor).extent.start.offset].splitlines()
        pieces.append(unit.data[at:begin])
        pieces += [b"\n" + line for line in lines if line.lstrip().startswith(b"#")]
        pieces.append(b"\n")
        at = end
    return b"".join([*pieces, unit.data[at:]]).decode("utf-8")


def start_of(unit: clang.Unit, kernel: Cursor) -> int:
    """Return where the text of a kernel begins, with attributes in front of it."""
    # The position of a declaration may leave out words before it; the end of the previous one does
    # not.
    before = bisect_right(unit.ends, kernel.extent.start.offset)
    start = unit.ends[before - 1] if before else 0
    while unit.data[start : start + 1] in (b";", b" ", b"\n", b"\t", b"\r"):
        start += 1
    return start


def preprocess(
    source: str, options: BuildOptions, environment: Environment
) -> tuple[str, list[str], set[str]]:
    """Return the source after its own macros and conditions, the names of the options' macros,
    and its own macros' names. Text built with the same options has to undefine these names at its
    top."""
    try:
        reader = new_reader()
    except OSError:  # it asks for the folder, and does not need it
        raise CannotParse("preprocessing: the current folder is gone") from None
    for line in "\n".join(environment.definitions()).splitlines():
        directive, _, rest = line[1:].partition(" ")
        (reader.define if directive == "define" else reader.undef)(rest)
    defined = _define(reader, options)
    reader.parse(source, "source.cl")
    out = [""]
    while (token := reader.token()) is not None:
        if out[-1][-1:] + token.value[:1] in _JOINED_TOKENS or hasattr(token, "is_apart"):
            out.append(" ")  # tokens that a macro put side by side remain two
        out.append(token.value)
    return "".join(out), defined, reader.made


def _define(reader: Reader, options: BuildOptions) -> list[str]:
    """Give the preprocessor the macros and folders of the options; return the macros' names."""
    defined = []
    for word in clang.parser_options(options):
        flag, value = word[:2], word[2:]
        if word == "-include":
            raise CannotParse("option -include")
        if flag == "-D":
            name, _, body = value.partition("=")
            reader.define(f"{name} {body if '=' in value else '1'}")
            defined.append(name.split("(")[0])
        elif flag == "-U":
            reader.undef(value)
        elif flag == "-I":
            reader.add_path(value)
    return defined
