"""Sizes of launches: which sizes no device, or not this one, can take.

Input: the sizes of one launch, as they were given. Output: nothing, or `Unsuitable` with what is
wrong. A driver finds that out only when it gets the launch. A held launch comes later, when nobody
knows which call was wrong.

Invariant: the driver would refuse everything that is refused here. It decides the rest itself, such
as how registers bound the groups of a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import pyopencl as cl

from ..records import NamedTuple

MOST = (1 << 64) - 1
"""Work-items that fit into a size."""

REMEMBERED = 4096
"""Sizes that were found to fit."""


Axes: TypeAlias = tuple[int, ...] | None
Asked: TypeAlias = tuple[object, ...]
"""A global size, which may begin with `acs.size`."""


NEWER = "-cl-std=cl2", "-cl-std=cl3", "-cl-std=clc++"
"""How options begin, in small letters, that ask for a language whose groups may differ in size.
Without them, programs are OpenCL C 1.x, on every device."""


class Sizing(NamedTuple):
    """The sizes of one launch, as plain integers, and what its kernel asks of them."""

    global_size: Asked
    local_size: Axes
    offset: Axes
    required: Axes
    """The local size that the kernel requires, or None."""
    may_have_rests: bool
    """Whether the kernel's program allows a last group that is smaller."""


class Unsuitable(Exception):  # noqa: N818  (an answer; who asked makes the user's error of it)
    """A launch cannot have these sizes."""


class SizeLimits:
    """Knows which sizes one device can take."""

    def __init__(self, device: cl.Device) -> None:
        self._most_items = tuple(device.max_work_item_sizes)
        self._most_in_group = int(device.max_work_group_size)
        self._whole_groups = not has_rests(device)
        self._fitting: set[Sizing] = set()

    def check(self, asked: Sizing) -> None:
        """Raise `Unsuitable` if a launch cannot have these sizes."""
        is_plain = bool(asked.global_size) and isinstance(asked.global_size[0], int)
        if is_plain and asked in self._fitting:
            return
        self._check(asked)
        if is_plain:
            if len(self._fitting) >= REMEMBERED:
                self._fitting.clear()
            self._fitting.add(asked)

    def _check(self, asked: Sizing) -> None:
        global_size, local_size, offset = asked[:3]
        many = len(global_size)
        if not 1 <= many <= 3:
            raise Unsuitable(f"global size {global_size} has {many} lengths, expected 1 to 3")
        for at, start in enumerate(offset or ()):
            whole = global_size[at] if at < many else 1
            length = whole if isinstance(whole, int) else 1
            if start + length > MOST:
                raise Unsuitable(f"offset {offset}: no work-item is beyond {MOST:,}")
        if offset is not None and len(offset) != many:
            raise Unsuitable(
                f"offset {offset} has {len(offset)} lengths, global size {global_size} has {many}"
            )
        if local_size is not None:
            self._check_groups(asked, local_size)

    def _leaves_rest(self, asked: Sizing, local_size: tuple[int, ...]) -> bool:
        """Tell whether a group would be left incomplete, which the device or the program does not
        take."""
        pairs = zip(asked.global_size, local_size, strict=False)
        has = any(isinstance(whole, int) and whole % part for whole, part in pairs)
        return has and (self._whole_groups or not asked.may_have_rests)

    def _check_groups(self, asked: Sizing, local_size: tuple[int, ...]) -> None:
        global_size, required, many = asked.global_size, asked.required, len(asked.global_size)
        if len(local_size) != many:
            raise Unsuitable(
                f"local size {local_size} has {len(local_size)} lengths, global size "
                f"{global_size} has {many}"
            )
        if required and any(length > 1 for length in required[many:]):
            raise Unsuitable(
                f"global size {global_size} is too short: the kernel requires local size "
                f"{tuple(required)}"
            )
        if required and tuple(required)[:many] != local_size:
            raise Unsuitable(f"local size {local_size}: the kernel requires {tuple(required)}")
        for at, (length, most) in enumerate(zip(local_size, self._most_items, strict=False)):
            if length > most:
                raise Unsuitable(
                    f"local size {local_size}: this device takes {most:,} at most in dimension "
                    f"{at}; None lets the driver choose"
                )
        if prod(local_size) > self._most_in_group:
            raise Unsuitable(
                f"local size {local_size}: {prod(local_size):,} work-items, this device takes "
                f"{self._most_in_group:,} in a group"
            )
        if self._leaves_rest(asked, local_size):
            raise Unsuitable(
                f"global size {global_size} is not a multiple of local size {local_size}"
                + (", which the kernel requires" if required else
                   "; choose one that divides it, or None")
            )  # fmt: skip


def may_have_rests(options: Sequence[str]) -> bool:
    """Tell whether a program with these options allows a last group that is smaller."""
    is_newer = any(one.lower().startswith(NEWER) for one in options)
    return is_newer and "-cl-uniform-work-group-size" not in options


def has_rests(device: cl.Device) -> bool:
    """Tell whether the last group of a launch may be smaller, for kernels that allow it."""
    version = device.version.split()[1]
    if version.startswith("1."):
        return False
    if version.startswith("2."):
        return True
    try:
        return bool(device.non_uniform_work_group_support)
    except (cl.Error, AttributeError):
        return True
