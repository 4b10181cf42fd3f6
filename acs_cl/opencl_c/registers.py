"""Registers: how many a work-item of each kernel has, as NVIDIA's compiler tells in its log.

In: what a program is built from. Out: the program, and registers by kernel. A driver that has the
program in a cache of its own says nothing: what it said once is remembered, and if it never did, it
has to compile again. It knows a program by its instructions, so that another kernel is put into it:
a comment changes nothing. Other drivers tell of no register.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyopencl as cl

from ..devices.build import build
from ..errors import AcsError
from ..host.digest import digest
from . import cache

VERBOSE = "-cl-nv-verbose"
_TOLD = re.compile(r"Compiling entry function '(\w+)'|Used (\d+) registers")


def of_program(
    context: cl.Context, device: cl.Device, source: str, options: Sequence[str]
) -> dict[str, int]:
    """Ask the compiler; nothing where it does not tell. A program that was built is built anew."""
    if "cl_nv_compiler_options" not in device.extensions or not source:
        return {}
    try:
        return build_told(context, device, source, (*options, VERBOSE))[1]
    except AcsError:  # the driver's objection to building it once more
        return {}


def build_told(
    context: cl.Context, device: cl.Device, source: str, words: Sequence[str]
) -> tuple[cl.Program, dict[str, int]]:
    """Build a program with `VERBOSE` among its options; the registers of its kernels, in the
    order of the log, under an empty name where that has none."""
    from secrets import token_hex  # which takes long to load, for what is rare

    program = build(context, device, source, words)
    found = _told(program, device)
    about = ["registers of kernels", source, *words, device.name, device.driver_version]
    name = digest("\0".join(about))
    if not found:
        known = cache.load(name)
        if known is not None:
            return program, known["registers"]
        mark = f"acs_mark_{token_hex(4)}"
        more = f"\nkernel void {mark}(global uint *x) {{ *x = 0x{mark[9:]}u; }}\n"
        program = build(context, device, source + more, words)
        found = _told(program, device)
        found.pop(mark, None)
    if found:
        cache.store(name, {"registers": found})
    return program, found


def _told(program: Any, device: cl.Device) -> dict[str, int]:
    kernel, found = "", {}
    log: Any = program.get_build_info(device, cl.program_build_info.LOG)
    for name, count in _TOLD.findall(log):
        if count:
            found[kernel] = int(count)
        kernel = name
    return found
