"""Registers of a work-item in each kernel, from the log of NVIDIA's compiler.

Input: the source and options of a program. Output: the program, and registers by kernel. If the
driver has the program in its own cache, it logs nothing. So a logged answer is remembered, and
without one the driver has to compile again. It knows a program by its instructions, not its
comments, so another kernel is added to it. Other drivers log no registers.
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
_TOLD = r"Compiling entry function '(\w+)'|Used (\d+) registers"


def of_program(
    context: cl.Context, device: cl.Device, source: str, options: Sequence[str]
) -> dict[str, int]:
    """Ask the compiler. Empty: it does not tell. A program that was built is built again."""
    if "cl_nv_compiler_options" not in device.extensions or not source:
        return {}
    try:
        return build_told(context, device, source, (*options, VERBOSE))[1]
    except AcsError:  # the driver refuses to build it once more
        return {}


def build_told(
    context: cl.Context, device: cl.Device, source: str, words: Sequence[str]
) -> tuple[cl.Program, dict[str, int]]:
    """Build a program with `VERBOSE` among its options. Return it and the registers of its kernels,
    in the order of the log. A kernel without a name in the log has an empty name."""
    from secrets import token_hex  # it takes long to load, and is rarely needed

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
    for name, count in re.findall(_TOLD, log):
        if count:
            found[kernel] = int(count)
        kernel = name
    return found
