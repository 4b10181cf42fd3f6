"""Facts that decide how a source is read: of the device, build options as words, and plain text.

Input: a device, options as PyOpenCL reports them, a source. Output: `DeviceFacts` and words, which
the parser needs before it starts, and text to search; `CannotParse`, if it fails. Each directive of
a source is in its `bare` text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..records import NamedTuple

if TYPE_CHECKING:
    import pyopencl as cl

BuildOptions: TypeAlias = str | Sequence[str] | None
"""Options of a build, as PyOpenCL takes and reports them."""

CONTINUED = r"\\[ \t\v\f]*\r?\n"
TRIGRAPH = r"\?\?[=/'()!<>-]"
_MEANT = dict(zip("=/'()!<>-", "#\\^[]|{}~", strict=True))
_LEFT_OUT = r"""(?s)//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""

_facts: dict[int, DeviceFacts] = {}


class CannotParse(Exception):  # noqa: N818  (an answer to the callers here, not an error of the user)
    """The source cannot be read as the device's compiler reads it; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class DeviceFacts(NamedTuple):
    """Facts of a device that decide how a source is read."""

    name: str = "any"
    vendor: str = ""
    driver: str = ""
    version: int = 120  # 300 for OpenCL 3.0
    address_bits: int = 64
    extensions: frozenset[str] = frozenset({"cl_khr_fp64", "cl_khr_byte_addressable_store"})
    features: frozenset[str] | None = None  # of OpenCL C 3.0; None: not known
    images: bool = True
    little_endian: bool = True
    platform: str = ""  # its version: sometimes it names the compiler

    @classmethod
    def of(cls, device: cl.Device | None) -> DeviceFacts:
        """Return the facts of `device`. None: those of a plain 64-bit device."""
        if device is None:
            return cls()
        import pyopencl as cl

        features = None
        try:
            listed: Any = device.get_info(cl.device_info.OPENCL_C_FEATURES)
            features = frozenset(str(getattr(entry, "name", entry)) for entry in listed)
        except (cl.Error, AttributeError):  # a device before OpenCL 3.0
            pass
        number = device.version.split()[1].split(".")
        return cls(
            device.name, device.vendor, device.driver_version,
            100 * int(number[0]) + 10 * int(number[1]), device.address_bits,
            frozenset(device.extensions.split()), features or None,
            bool(device.image_support), bool(device.endian_little), device.platform.version,
        )  # fmt: skip


def facts_of(device: cl.Device | None) -> DeviceFacts:
    """Return the facts of a device, which is asked once."""
    if device is None:
        return DeviceFacts()
    key = device.int_ptr
    if key not in _facts:
        _facts[key] = DeviceFacts.of(device)
    return _facts[key]


def without_trigraphs(text: str) -> str:
    """Replace each trigraph by its character."""
    return re.sub(TRIGRAPH, lambda match: _MEANT[match[0][2]], text) if "??" in text else text


def bare(text: str) -> str:
    """Join continued lines, and leave out comments, contents of strings, and digraphs."""
    text = re.sub(CONTINUED, "", text)
    text = re.sub(_LEFT_OUT, lambda match: '""' if match[0][0] in "\"'" else " ", text)
    return text.replace("%:", "#")


def may_include(source: str, options: Sequence[str]) -> bool:
    """Tell whether a program may read other files, which change without it. Comments do not
    count."""
    if "-include" in options or "include" not in source.replace("\\\n", ""):
        return "-include" in options
    return any("include" in bare(text) for text in (source, without_trigraphs(source)))


def split_options(options: BuildOptions) -> list[str]:
    """Return build options as a list of words. `-D`, `-I` and `-U` are one word with their value,
    which may come as the next one."""
    joined: list[str] = []
    for word in _words_of(options):
        if joined and joined[-1] in ("-D", "-I", "-U"):
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def _words_of(options: BuildOptions) -> list[str]:
    if options is None:
        return []
    text = options if isinstance(options, str) else " ".join(options)
    whole = text is not options and any(" " in word and "=" not in word for word in options)
    if not whole and not any(mark in text for mark in "'\"\\"):
        return text.split()
    import shlex  # here, since few programs need it

    if not isinstance(options, str):
        text = " ".join(
            shlex.quote(word) if " " in word and "=" not in word else word for word in options
        )
    try:
        return shlex.split(text)
    except ValueError:  # an unbalanced quote: the words as they stand
        return text.split()


_NOT_FOR_CODE = r"-(D|I|U|W|w$|g$|s$|include$|cl-kernel-arg-info|cl-nv-verbose)"


def options_for_code(options: BuildOptions) -> list[str]:
    """Return the options that still matter after macros and includes are expanded."""
    kept: list[str] = []
    skip = False
    for word in split_options(options):
        if not skip and not re.match(_NOT_FOR_CODE, word):
            kept.append(word)
        skip = not skip and word in ("-s", "-include")
    return kept
