"""Devices: list them, choose one, and make it usable.

Input: nothing, a device, an index, a name, or ``PYOPENCL_CTX`` from the environment. Output: a
``pyopencl.Device`` that can build programs, and descriptions.

Invariant: a choice is never a guess. A name that fits several devices, or none, is a ``UsageError``
that lists all devices. Importing this module touches no device.
"""

from __future__ import annotations

import platform as host_platform
import sys
from typing import Union

import pyopencl as cl

from acs_cl._version import __version__
from acs_cl.devices.pocl import POCL_PLATFORM, advice, is_pocl, repair, wish
from acs_cl.errors import DeviceError, UsageError, whole

from ..host.environment import variable

__all__ = [
    "POCL_PLATFORM",
    "Spec",
    "advice",
    "choose",
    "describe",
    "devices",
    "full_name",
    "key",
    "kind",
    "repair",
    "wish",
]

Spec = Union[None, "cl.Device", int, str]


def devices() -> list[cl.Device]:
    """Return every device of every platform, in the order of the driver. Empty: there is none."""
    return [device for platform in _platforms() for device in platform.get_devices()]


def choose(spec: Spec = None) -> cl.Device:
    """Return the device meant by *spec*, ready to build programs.

    ``None`` takes ``PYOPENCL_CTX`` if that is set, else a GPU, else PoCL, else the first device. An
    ``int`` is an index into :func:`devices`. A string is a part of ``"platform name / device
    name"`` in any case; the full text wins over parts of others. A string of digits that is an
    index counts as that index, as in PyOpenCL, because command lines have only strings.
    """
    device = _find(spec)
    repair(device)
    return device


def full_name(device: cl.Device) -> str:
    """Return ``platform name / device name``, which the strings of :func:`choose` are parts of."""
    return f"{device.platform.name.strip()} / {device.name.strip()}"


def describe(device: cl.Device) -> str:
    """Describe a device in one line: names, kind, compute units, memory, driver."""
    mebibytes = device.global_mem_size // 2**20
    memory = f"{mebibytes / 1024:.1f} GiB" if mebibytes >= 1024 else f"{mebibytes} MiB"
    units = device.max_compute_units
    return (
        f"{full_name(device)} ({kind(device)}, {units} compute unit{'s' * (units != 1)}, "
        f"{memory}, driver {device.driver_version.strip()})"
    )


def kind(device: cl.Device) -> str:
    """Return ``"GPU"``, ``"CPU"``, ``"accelerator"`` or ``"other"``."""
    for flag, name in (
        (cl.device_type.GPU, "GPU"),
        (cl.device_type.CPU, "CPU"),
        (cl.device_type.ACCELERATOR, "accelerator"),
    ):
        if device.type & flag:
            return name
    return "other"


def key(device: cl.Device) -> str:
    """Return the key of this device's measurements. It changes with hardware, driver or acs_cl.

    It includes the number of compute units, because environment variables of CPU drivers set it.
    """
    return " | ".join(
        str(part).strip()
        for part in (
            device.platform.name,
            device.platform.version,
            device.name,
            device.version,
            device.driver_version,
            f"{device.max_compute_units} units",
            f"acs_cl {__version__}",
        )
    )


# {{{ choosing


def _platforms() -> list[cl.Platform]:
    try:
        return list(cl.get_platforms())
    except cl.LogicError as error:
        # The loader reports "no driver installed" as an error, not as an empty list.
        if "PLATFORM_NOT_FOUND_KHR" in str(error):
            return []
        raise DeviceError(f"the OpenCL loader could not list its platforms: {error}") from error


INSTEAD = {
    "Context": "; write context=",
    "CommandQueue": "; write context=queue.context",
    "Platform": "; write one of its get_devices()",
    "list": "; write devices= for several",
    "tuple": "; write devices= for several",
}
"""How to give what is no device, by its type."""


def _find(spec: Spec) -> cl.Device:
    if isinstance(spec, cl.Device):
        return spec
    number = whole(spec)
    if spec is not None and number is None and not isinstance(spec, str):
        instead = INSTEAD.get(type(spec).__name__, "")
        raise UsageError(
            "a device is given as None, a pyopencl.Device, an index or a part of its name; "
            f"got {type(spec).__name__}: {spec!r}{instead}"
        )
    there = devices()
    if not there:
        raise DeviceError(_nothing_installed())
    if spec is None:
        wish = variable("PYOPENCL_CTX")
        return _from_environment(wish, there) if wish else min(there, key=_rank)
    if number is not None:
        if not 0 <= number < len(there):
            raise UsageError(
                f"device index {number} is out of range: got {number}, "
                f"expected 0 to {len(there) - 1}\n{_listing(there)}"
            )
        return there[number]
    assert isinstance(spec, str)
    if spec.strip().isdecimal() and int(spec) < len(there):
        return there[int(spec)]
    return _by_name(spec, there)


def _rank(device: cl.Device) -> int:
    if device.type & cl.device_type.GPU:
        return 0
    return 1 if is_pocl(device) else 2


def _by_name(name: str, there: list[cl.Device]) -> cl.Device:
    wanted = name.strip().lower()
    exact = [device for device in there if full_name(device).lower() == wanted]
    found = exact or [device for device in there if wanted in full_name(device).lower()]
    if not wanted or not found:
        raise UsageError(f"no device is called {name!r}; there is:\n{_listing(there)}")
    if len(found) > 1:
        raise UsageError(
            f"the device name {name!r} fits {len(found)} devices; give more of the name, or the "
            f"index:\n{_listing(there)}"
        )
    return found[0]


def _from_environment(wish: str, there: list[cl.Device]) -> cl.Device:
    """Choose by PyOpenCL's ``platform:device``, each an index or part of a name; the device is 0 by
    default.

    There are two differences, both instead of a silent choice. A part that fits different names is
    an error. So is a list of several devices, since a runtime has one.
    """
    platform_part, _, device_part = wish.partition(":")
    platforms = _platforms()
    names = [platform.name.strip() for platform in platforms]
    # Of equal platform names PyOpenCL takes the last, of equal device names the first.
    platform = platforms[_pick(platform_part, names, "platform", wish, there, last=True)]
    candidates = platform.get_devices()
    if not candidates:
        raise UsageError(
            f"PYOPENCL_CTX={wish!r}: platform {platform.name.strip()!r} has no device; "
            f"there is:\n{_listing(there)}"
        )
    names = [device.name.strip() for device in candidates]
    return candidates[_pick(device_part, names, "device", wish, there, last=False)]


def _pick(
    part: str, names: list[str], what: str, wish: str, there: list[cl.Device], *, last: bool
) -> int:
    part = part.strip()
    if not part:
        return 0
    if part.isdecimal() and int(part) < len(names):
        return int(part)
    lowered = part.lower()
    found = [i for i, name in enumerate(names) if name.lower() == lowered]
    found = found or [i for i, name in enumerate(names) if lowered in name.lower()]
    if found and len({names[i] for i in found}) == 1:
        return found[-1 if last else 0]
    trouble = f"fits more than one {what}" if found else f"fits no {what}"
    if not found and what == "device" and "," in part:
        trouble = "names several devices, and a runtime uses one"
    raise UsageError(
        f"PYOPENCL_CTX={wish!r}: {part!r} {trouble}; expected platform:device, each an index or "
        f"part of a name; there is:\n{_listing(there)}"
    )


def _listing(there: list[cl.Device]) -> str:
    return "\n".join(f"  {index}: {full_name(device)}" for index, device in enumerate(there))


def _nothing_installed() -> str:
    if sys.platform == "linux" and host_platform.machine() == "x86_64":
        cure = (
            'install one that runs on the CPU with:  pip install "acs_cl[pocl]"  '
            "(or the driver of your GPU's vendor)"
        )
    else:
        cure = "install the OpenCL driver of your device's vendor, or PoCL from your distribution"
    return f"no OpenCL device was found: no driver (ICD) is installed or none has a device; {cure}"


# }}}
