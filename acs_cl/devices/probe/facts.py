"""Declarations of a driver, and results of test compiles.

Input: a device, and a context on it for compiling. Output: plain values. Invariant: nothing runs on
the device here. If a driver does not understand a question, the answer is the weakest value, never
an exception.
"""

from __future__ import annotations

from typing import cast

import pyopencl as cl

NVIDIA = "NVIDIA"
AMD = "AMD Accelerated Parallel Processing"

_FENCE_C11 = """
kernel void acs_probe_fence(global atomic_uint *flag) {
    atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device);
    atomic_store_explicit(flag, 1u, memory_order_release, memory_scope_device);
}
"""
# Not standard OpenCL C: NVIDIA's compiler takes inline PTX, and has no other fence that reaches
# across work-groups.
_FENCE_PTX = """
kernel void acs_probe_fence(global uint *flag) {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    flag[0] = 1u;
}
"""
_ARGUMENT = "kernel void acs_probe_argument(global const float *input) { (void)input; }"


def build(
    device: cl.Device, context: cl.Context, source: str, options: bytes = b""
) -> cl._cl._Program:
    """Build past PyOpenCL's binary cache.

    On some drivers that cache loses the argument info on the second build. A failed build leaves
    its source behind in a file, which a test compile must not do. Nor does it warn the user of what
    the compiler says. The error of a failed build has the compiler's words.
    """
    program = cl._cl._Program(context, source)
    try:
        program._build(options, [device])
    except cl.Error as error:
        said = str(program.get_build_info(device, cl.program_build_info.LOG))
        raise cl.RuntimeError(f"{error}: {said.strip()}") from error
    return program


def check_build(device: cl.Device) -> None:
    """Raise the driver's error if it builds nothing for this device."""
    build(device, cl.Context([device]), _ARGUMENT)


def memory_model(device: cl.Device, context: cl.Context) -> str:
    """Return the device-wide memory order, proved by compiling: ``c11``, ``ptx`` or ``none``."""
    declared = declared_memory_model(device)
    if declared == "c11" and any(
        _builds(device, context, _FENCE_C11, b"-cl-std=" + standard)
        for standard in (b"CL3.0", b"CL2.0")
    ):
        return "c11"
    if NVIDIA in device.platform.name and _builds(device, context, _FENCE_PTX, b""):
        return "ptx"
    return "none"


def declared_memory_model(device: cl.Device) -> str:
    """Return the memory order, as far as it is known without compiling."""
    scope = cl.device_atomic_capabilities.SCOPE_DEVICE
    order = cl.device_atomic_capabilities.ORDER_ACQ_REL
    try:
        fences = cast(int, device.get_info(cl.device_info.ATOMIC_FENCE_CAPABILITIES))
        memory = cast(int, device.get_info(cl.device_info.ATOMIC_MEMORY_CAPABILITIES))
    except cl.Error:  # a driver before OpenCL 3.0
        fences = memory = 0
    if fences & scope and fences & order and memory & scope:
        return "c11"
    return "ptx" if NVIDIA in device.platform.name else "none"


def argument_info(device: cl.Device, context: cl.Context) -> bool:
    """Tell whether kernels have their arguments' names and qualifiers when asked to keep them."""
    try:
        program = build(device, context, _ARGUMENT, b"-cl-kernel-arg-info")
        kernel = cl.Kernel(program, "acs_probe_argument")
        return kernel.get_arg_info(0, cl.kernel_arg_info.NAME) == "input"
    except cl.Error:
        return False


def may_poll(device: cl.Device) -> tuple[bool, str]:
    """Tell whether a resident work-group may wait for another one's memory, and why."""
    if device.type & cl.device_type.CPU:
        # A polling group blocks a thread of the driver for all other work, copies included.
        return False, "not tried on CPU devices"
    if device.type & cl.device_type.GPU:
        return True, "by its kind: groups of a GPU are resident side by side"
    return False, "not tried on this kind of device"


def svm(device: cl.Device) -> str:
    """Return the strongest shared virtual memory: ``none``, ``coarse``, ``fine`` or ``system``."""
    try:
        have = cast(int, device.get_info(cl.device_info.SVM_CAPABILITIES))
    except cl.Error:
        return "none"
    for bit, name in (
        (cl.device_svm_capabilities.FINE_GRAIN_SYSTEM, "system"),
        (cl.device_svm_capabilities.FINE_GRAIN_BUFFER, "fine"),
        (cl.device_svm_capabilities.COARSE_GRAIN_BUFFER, "coarse"),
    ):
        if have & bit:
            return name
    return "none"


def _builds(device: cl.Device, context: cl.Context, source: str, options: bytes) -> bool:
    try:
        cl.Kernel(build(device, context, source, options), "acs_probe_fence")
    except cl.Error:
        return False
    return True
