"""Commands of one device, made from commands that name memory on all devices.

Input: commands with parts of arrays in place of the driver's memory, and kernels of the first
device. Output: commands that a queue of one device takes. A kernel is built for another device when
a launch needs it there (its twin), and kept as long as the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyopencl as cl

from ..devices.build import build, cut_at_blanks
from ..devices.driver import OwnKernel, Place
from ..errors import DeviceError
from ..launch.commands import HostCommand, KernelCommand, TransferCommand
from ..launch.decision import DecidedCommand, Fault
from ..memory.array import HostArray
from ..records import Access, Command
from .memory import AnyPart

PlaceOn = Callable[[AnyPart], Place]
KernelOn = Callable[[OwnKernel], OwnKernel]

_FOREIGN = (cl.MemoryObjectHolder, cl.SVMPointer, cl.Sampler)


def pinned_because(command: Command, access: Access) -> str:
    """Say why a launch has to run on the first device under every policy; empty if it need not."""
    if command.on_host:
        return "a host task has its data from the first device"
    if not access.reads and not access.writes:
        return "it touches no memory"
    if any(span.base <= 0 for span in (*access.reads, *access.writes)):
        return "it uses memory that only the first device has"
    used = list[object]()
    if isinstance(command, DecidedCommand):
        if command.is_counted:
            return "the first device looks at its count"
        if command.decision.when is not None:
            used.append(command.decision.when.place.memory)
        command = command.plain
    if isinstance(command, KernelCommand):
        used += command.pointers[1::2]
    if any(isinstance(one, _FOREIGN) and not isinstance(one, AnyPart) for one in used):
        return "it uses memory that only the first device has"
    return ""


def bound(command: Command, place_on: PlaceOn, kernel_on: KernelOn) -> Command:
    """Return the command for one device."""
    if isinstance(command, KernelCommand):
        return _kernel(command, place_on, kernel_on)
    if isinstance(command, TransferCommand):
        return command._replace(
            target=_side(command.target, place_on), source=_side(command.source, place_on)
        )
    if isinstance(command, DecidedCommand):
        return _decided(command, place_on, kernel_on)
    if isinstance(command, HostCommand):
        command.reads = _pairs(command.reads, place_on)
        command.writes = _pairs(command.writes, place_on)
    return command


def _kernel(command: KernelCommand, place_on: PlaceOn, kernel_on: KernelOn) -> KernelCommand:
    pointers = tuple(
        place_on(one).memory if isinstance(one, AnyPart) else one for one in command.pointers
    )
    return command._replace(kernel=kernel_on(command.kernel), pointers=pointers)


def _decided(command: DecidedCommand, place_on: PlaceOn, kernel_on: KernelOn) -> DecidedCommand:
    def make() -> tuple[KernelCommand, Fault | None]:
        return _kernel(command.guarded, place_on, kernel_on), command.fault

    plain = _kernel(command.plain, place_on, kernel_on)
    return DecidedCommand(plain, command.decision, make, command.pool)


def _side(side: Place | HostArray, place_on: PlaceOn) -> Place | HostArray:
    """Return the place on the device, or the host's memory as it is."""
    return _place(side, place_on) if isinstance(side, Place) else side


def _place(place: Place, place_on: PlaceOn) -> Place:
    if not isinstance(place.memory, AnyPart):
        return place
    there = place_on(place.memory)
    return Place(there.memory, there.offset + place.offset, place.nbytes)


def _pairs(
    pairs: Iterable[tuple[Place, HostArray]], place_on: PlaceOn
) -> list[tuple[Place, HostArray]]:
    return [(_place(place, place_on), host) for place, host in pairs]


class Twins:
    """Makes the kernels of a runtime for all of its devices. Each kernel keeps its twins, so that
    they go with it."""

    def __init__(self, contexts: Sequence[cl.Context], devices: Sequence[cl.Device]) -> None:
        self._contexts = contexts
        self._devices = devices

    def kernel(self, kernel: OwnKernel, device: int) -> OwnKernel:
        """Return the kernel for a device; for the first device, the kernel itself."""
        if not device:
            return kernel
        context = self._contexts[device]
        if kernel.twins is None:
            kernel.twins = {}
        found = kernel.twins.get(context)
        if found is None:
            source, options, name = self._origin(kernel)
            found = OwnKernel(build(context, self._devices[device], source, options), name)
            found.signature = kernel.signature
            kernel.twins[context] = found
        return found

    def _origin(self, kernel: OwnKernel) -> tuple[str, Sequence[str], str]:
        if kernel.origin is not None:
            source, options, name = kernel.origin
            return source, options, name
        try:
            program: cl.Program = kernel.get_info(cl.kernel_info.PROGRAM)  # type: ignore[assignment]
            source = str(program.get_info(cl.program_info.SOURCE))
            what = cl.program_build_info.OPTIONS
            words = str(program.get_build_info(self._devices[0], what))  # type: ignore[no-untyped-call]
        except cl.Error as error:
            raise DeviceError(
                f"the driver does not tell the source of kernel {kernel.function_name!r}, which "
                f"another device needs ({error})"
            ) from None
        return source, cut_at_blanks(words), kernel.function_name
