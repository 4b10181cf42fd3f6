"""PoCL's faults: a CPU that its compiler does not know, and offsets.

Input: a device. Output: a sentence about the repair, or an empty one; whether a fault is there.

Invariant: the CPU is repaired only if ``ACS_CL_POCL_CPU`` asks for it. Memory is written only if
exactly the expected contents are found. A failure leaves the driver as it was, so the repair never
makes a program fail.
"""

from __future__ import annotations

import os
import platform as host_platform
import re
import struct
import sys

import pyopencl as cl

from ..host.environment import variable

POCL_PLATFORM = "Portable Computing Language"

_STRUCT_BYTES = 4096  # more than PoCL's device record: the name is in its first part
_GENERIC = b"generic\0"
_HASWELL_FLAGS = {"avx2", "bmi2", "fma", "f16c", "movbe", "abm"}

# Results of `repair`, by address of the driver's device record: a second call repeats the sentence.
_repaired: dict[int, str] = {}


def is_pocl(device: cl.Device) -> bool:
    """Tell whether a device is one of PoCL's."""
    return bool(device.platform.name.strip() == POCL_PLATFORM)


def mixes_machine_code(device: cl.Device) -> bool:
    """Tell whether the driver may unload a kernel's machine code while launches of it run.

    PoCL has machine code of a kernel for launches with an offset and for those without, and anew
    for one that is larger than all before it. It keeps a number of such pieces loaded. Before 6.0
    it confuses them when a launch ends, so that the wrong one seems to be free.
    """
    if not is_pocl(device):
        return False
    major = re.match(r"\d+", device.driver_version.strip())
    return major is None or int(major[0]) < 6


def compiles_late(device: cl.Device) -> bool:
    """Tell whether a kernel's machine code is made at its first launch. A build then takes as long
    for many kernels as for one."""
    return is_pocl(device)


def has_assertions(device: cl.Device) -> bool:
    """Tell whether this PoCL ends the process where it finds itself wrong."""
    return "Asserts" in device.platform.version


def wish() -> str:
    """Return how PoCL is to be repaired, if the environment asks for it."""
    wished = variable("ACS_CL_POCL_CPU")
    return "" if wished.lower() == "off" else wished


def repair(device: cl.Device) -> str:
    """Make PoCL usable if it does not know this machine's CPU; return a sentence about it, or
    ``""``.

    PoCL asks its LLVM for the name of the CPU. A CPU newer than that LLVM is called "generic". On
    x86-64 the compiler refuses that target, so no program builds at all (PoCL issue 1049). PoCL 5.0
    and later take the name from ``POCL_LLVM_CPU_NAME``. Older ones, the wheel's included, have no
    such setting: the name goes from the driver's device record into the compiler, behind all
    options. So it is overwritten in the driver's memory: a string on the heap that the device
    record points to.

    A library must not write to a driver's memory unasked. ``ACS_CL_POCL_CPU=auto`` asks for it. Any
    other value except ``off`` also asks for it, and is the new name (at most 7 characters, the room
    there is).

    All of these have to hold, too: Linux on x86-64, PoCL's platform, a version string that ends in
    ``-generic``, and in the record pointers to exactly one writable string ``generic``. A second
    call only repeats the sentence; it never raises.
    """
    try:
        if sys.platform != "linux" or host_platform.machine() not in ("x86_64", "AMD64"):
            return ""
        if not is_pocl(device):
            return ""
        address = int(device.int_ptr)
        if address in _repaired:
            return _repaired[address]
        wished = wish()
        if not wished or not device.version.strip().endswith("-generic"):
            return ""
        name, remark = _cpu_name("" if wished.lower() == "auto" else wished)
        if not _overwrite(address, _record_bytes(device, address), name):
            return ""
    except (AttributeError, OSError, ValueError, cl.Error):
        # A repair must not make a program fail. The driver's own error is clear.
        return ""
    _repaired[address] = (
        f"PoCL's compiler does not know this CPU; programs are built for {name!r} instead{remark}"
    )
    return _repaired[address]


def advice(log: str) -> str:
    """Return a hint to add to a compiler's log that refuses the CPU, or ``""``."""
    if "unknown target CPU" not in log:
        return ""
    return (
        "\nThis PoCL does not know this CPU, and builds nothing on it. Set the environment "
        "variable ACS_CL_POCL_CPU=auto, and acs_cl puts another name into the driver's memory. For "
        "PoCL 5.0 and later, set POCL_LLVM_CPU_NAME=x86-64."
    )


def _cpu_name(wished: str) -> tuple[str, str]:
    """Return the new name, and a remark on it."""
    if 0 < len(wished) < len(_GENERIC) and wished.isascii() and wished.replace("-", "").isalnum():
        return wished, " (ACS_CL_POCL_CPU)"
    remark = f" (ACS_CL_POCL_CPU={wished!r} is no name of 1 to 7 characters)" if wished else ""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("flags"):
                known = set(line.split(":", 1)[1].split()) >= _HASWELL_FLAGS
                return ("haswell" if known else "x86-64"), remark
    return "x86-64", remark


def _record_bytes(device: cl.Device, address: int) -> int:
    """Return how much to search: PoCL's devices are one array, so the next one is the end."""
    others = [other.int_ptr for other in device.platform.get_devices()]
    return min([_STRUCT_BYTES, *(other - address for other in others if other > address)])


def _overwrite(address: int, size: int, name: str) -> bool:
    # Through the kernel's view of our own memory: there a wrong address is an OSError, while a
    # plain dereference would end the process.
    memory = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
    try:
        record = os.pread(memory, size, address)
        found = set()
        for (pointer,) in struct.iter_unpack("<Q", record[: len(record) // 8 * 8]):
            if 4096 <= pointer < 2**47:
                try:
                    if os.pread(memory, len(_GENERIC), pointer) == _GENERIC:
                        found.add(pointer)
                except OSError:
                    continue  # an integer that is no address
        if len(found) != 1:
            return False
        target = found.pop()
        # This write could reach read-only pages: a library's constants must not change.
        if not _writable(target):
            return False
        os.pwrite(memory, name.encode("ascii") + b"\0", target)
        return True
    finally:
        os.close(memory)


def _writable(address: int) -> bool:
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            span, rights = line.split()[:2]
            low, high = (int(edge, 16) for edge in span.split("-"))
            if low <= address < high:
                return "w" in rights and address + len(_GENERIC) <= high
    return False
