"""Macros and conditions of a source are worked off, so that byte offsets are those of the text.

In: a source, its build options, a device. Out: the same program without directives but pragmas,
and the names that the options define. Invariant: what only the device's compiler can expand (its
constants, `as_type`) stays as it is written, and a source's question whether such a name is defined
is answered with yes.
"""

from __future__ import annotations

import copy
import io
import re
from typing import Any

from acs_cl.translate import clang, prelude
from acs_cl.translate.clang import CannotParse

_CONSTANT = re.compile(r"^#define (\w+) (.+)$", re.MULTILINE)
_LIMIT = re.compile(r"U?(CHAR|SHRT|INT|LONG)_(MAX|MIN)$|SCHAR_(MAX|MIN)$|CHAR_BIT$")


def unit_with(source: str, options: Any, device: Any, kernel: str) -> clang.Unit:
    """The preprocessed source, parsed, as text that a variant of `kernel` may stand behind and that
    is built with the same options; other kernels are not in it, which would take the device's
    compiler its time again. Raises `CannotParse`, also where it has no such kernel."""
    clang.parse(source, options, device)  # to refuse what may read differently on the device
    plain, defined = preprocess(source, options, device)
    # what the options define is already worked off
    text = "".join(f"#undef {name}\n" for name in defined) + plain
    unit = clang.parse(text, options, device)
    if kernel not in unit.kernels:
        raise CannotParse(f"the source has no kernel {kernel}")
    rest = _without_other_kernels(unit, kernel)
    return unit if rest == unit.source else clang.parse(rest, options, device)


def _without_other_kernels(unit: clang.Unit, kernel: str) -> str:
    """Its text but for kernels that nothing in it names. Directives between them stay."""
    data = unit.source.encode("utf-8")
    for name, cursor in sorted(
        unit.kernels.items(), key=lambda one: one[1].extent.start.offset, reverse=True
    ):
        if name == kernel or len(re.findall(rf"\b{name}\b", unit.source)) > 1:
            continue
        begin, end = start_of(unit, cursor), cursor.extent.end.offset
        kept = [line for line in data[begin:end].splitlines() if line.lstrip().startswith(b"#")]
        data = b"\n".join([data[:begin], *kept, data[end:]])
    return data.decode("utf-8")


def start_of(unit: clang.Unit, kernel: Any) -> int:
    """Where the text of a kernel begins, attributes in front of it included."""
    # The position of a declaration may leave out what stands before it; the end of the one before
    # does not.
    begin = kernel.extent.start.offset
    start = 0
    for cursor in clang.library().collect(unit.tree.cursor):
        where = cursor.extent
        if str(where.end.file) == clang.SOURCE_PATH and where.end.offset <= begin:
            start = max(start, where.end.offset)
    text = unit.source.encode("utf-8")
    while text[start : start + 1] in (b";", b" ", b"\n", b"\t", b"\r"):
        start += 1
    return start


def preprocess(source: str, options: Any, device: Any) -> tuple[str, list[str]]:
    """The source after its own macros and conditions, and the names of the options' macros.

    Whoever builds the text with the same options undefines those names at its top.
    """
    from pcpp import Preprocessor

    class Reader(Preprocessor):  # type: ignore[misc]  # pcpp has no types
        def on_error(self, file: str, line: int, message: str) -> None:
            raise CannotParse(f"preprocessing, line {line}: {message}")

        def on_directive_unknown(
            self, directive: Any, tokens: Any, passing: bool, before: Any
        ) -> bool | None:
            if directive.value == "error":
                raise CannotParse(f"line {directive.lineno}: #error is reached")
            if directive.value != "pragma":
                return True
            if tokens and tokens[0].value in ("unroll", "nounroll"):
                for token in tokens[1:]:  # a count may be a macro
                    expanded = self.expand_macros([copy.copy(token)])
                    token.value = "".join(part.value for part in expanded)
            return None

    reader = Reader()
    reader.line_directive = None
    names = _define(reader, options, device)
    reader.parse(source, "source.cl")
    out = io.StringIO()
    reader.write(out)
    return out.getvalue(), names


def _define(reader: Any, options: Any, device: Any) -> list[str]:
    """Give the preprocessor the macros of device and options; the names that the options define."""
    facts = clang.facts_of(device)
    words = clang.parser_options(options)
    standard = next((w for w in reversed(words) if w.startswith("-cl-std=")), "-cl-std=CL1.2")
    version = "".join(re.findall(r"\d", standard)) + "0"
    for name, value in _CONSTANT.findall(prelude.text(facts, frozenset())):
        if name in facts.extensions:
            continue
        # Those that a condition may compare get their value. The rest stands for itself: the value
        # is the device's business, but that there is one may decide what the source defines.
        reader.define(f"{name} {value if _LIMIT.match(name) else name}")
    for name, value in prelude.macros(facts).items():
        if name != "asm" and "(" not in name:
            reader.define(f"{name} {value}")
    for name in [*facts.extensions, *(facts.features or ())]:
        if name.isidentifier():
            reader.define(f"{name} 1")
    reader.define(f"__OPENCL_C_VERSION__ {version}")
    for number in ("1_0", "1_1", "1_2", "2_0", "3_0"):
        reader.define(f"CL_VERSION_{number} {number.replace('_', '')}0")
    names = []
    at = 0
    while at < len(words):
        word = words[at]
        flag, value = word[:2], word[2:]
        if word in ("-D", "-I", "-U"):
            at += 1
            value = words[at]
        if word == "-include":
            raise CannotParse("option -include")
        if flag == "-D":
            name, _, body = value.partition("=")
            reader.define(f"{name} {body if '=' in value else '1'}")
            names.append(name.split("(")[0])
        elif flag == "-U":
            reader.undef(value)
        elif flag == "-I":
            reader.add_path(value)
        at += 1
    return names
