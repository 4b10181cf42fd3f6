"""Translations of kernels into functions, and how they outlive a process.

Input: the source of a program, its build options and a device. Output: its translation if an
earlier process left it on disk. Translations there have a mark instead of the prefix of a program;
it is put in when they are loaded.

A program that ran before needs this module and no parser. Next to a program that launches all the
time, loading the parser would take long.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyopencl as cl

from acs_cl.devices.facts import BuildOptions, facts_of, may_include, split_options
from acs_cl.opencl_c import cache

from ...records import NamedTuple

_FORMAT = 10  # raise it when the translation or the record changes
MARK = "acs_PREFIX_"
"""Stands for the prefix until the text leaves here."""


class CannotTranslate(Exception):  # noqa: N818  (an answer to the callers here, not an error of the user)
    """A program or kernel cannot become a function; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Field(NamedTuple):
    """One argument in the blob."""

    kind: str  # "pointer": a device address; "value"; "local": a byte offset into the arena
    offset: int
    size: int


class Function(NamedTuple):
    """A kernel that can be called."""

    kernel: str  # its name in the source
    symbol: str  # of the entry to call
    fields: tuple[Field, ...]
    blob_bytes: int
    local_bytes: int  # of the arena, for its `__local` variables; `__local` arguments follow
    barriers: bool  # it may wait for the other items of its group
    group_size: tuple[int, int, int] | None  # reqd_work_group_size
    tiled: bool  # any division of its items into groups is right
    children: tuple[str, ...] = ()  # entries of functions whose items it may spawn
    loops: tuple[str, ...] = ()  # functions whose items run in a loop, and why


class Functions(NamedTuple):
    """A source whose kernels can be called."""

    text: str
    functions: dict[str, Function]
    reasons: dict[str, str]  # by name: why the other kernels cannot be called
    options: tuple[str, ...]  # those that matter for code generation


def may_keep(source: str, options: BuildOptions) -> bool:
    """Tell whether the translation of a source can be on disk. Included files are not part of the
    key, so that of a source with some is not."""
    return cache.folder() is not None and not may_include(source, split_options(options))


def load(
    source: str, options: BuildOptions, device: cl.Device | None, prefix: str
) -> Functions | None:
    """Return the translation that is on disk, if there is one."""
    if not may_keep(source, options):
        return None
    record = cache.load(_key(source, split_options(options), device))
    found = _from_record(record) if record is not None else None
    return None if found is None else with_prefix(found, prefix)


def store(found: Functions, source: str, options: BuildOptions, device: cl.Device | None) -> None:
    """Keep a translation that has no prefix yet."""
    if may_keep(source, options):
        cache.store(_key(source, split_options(options), device), _to_record(found))


def write(path: str, found: Functions | None, reason: str = "") -> None:
    """Leave a translation that has no prefix yet, or why there is none, for another process."""
    record = {"reason": reason} if found is None else _to_record(found)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(record, file)


def read(path: str, prefix: str) -> Functions:
    """Return the translation that another process has left. Raises `CannotTranslate` with its
    reason, or an `OSError` or a `ValueError` if nothing is there."""
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    if "reason" in record:
        raise CannotTranslate(record["reason"])
    found = _from_record(record)
    if found is None:
        raise ValueError("it is not complete")
    return with_prefix(found, prefix)


def _key(source: str, words: Sequence[str], device: cl.Device | None) -> str:
    return cache.key(source, f"functions {_FORMAT}", words, facts_of(device))


def with_prefix(found: Functions, prefix: str) -> Functions:
    """Put the prefix of a program into all names of a translation."""
    functions = {
        name: function._replace(
            symbol=function.symbol.replace(MARK, prefix),
            children=tuple(child.replace(MARK, prefix) for child in function.children),
        )
        for name, function in found.functions.items()
    }
    return found._replace(text=found.text.replace(MARK, prefix), functions=functions)


def _to_record(found: Functions) -> cache.Record:
    return {
        "text": found.text, "functions": list(found.functions.values()),
        "reasons": found.reasons, "options": found.options,
    }  # fmt: skip


def _from_record(record: cache.Record) -> Functions | None:
    try:
        functions = {}
        for entries in record["functions"]:
            one = Function(*entries)
            fields = tuple(Field(*field) for field in one.fields)
            functions[one.kernel] = one._replace(
                fields=fields, children=tuple(one.children), loops=tuple(one.loops)
            )
            if one.group_size is not None:
                x, y, z = one.group_size
                functions[one.kernel] = functions[one.kernel]._replace(group_size=(x, y, z))
        return Functions(record["text"], functions, record["reasons"], tuple(record["options"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
