"""Which of some macros a device's own compiler defines, asked of that compiler.

In: a device and names. Out: those of them that are defined, or None if the compiler cannot be
asked. Invariant: nothing runs on the device. A program is built in which every name that is
defined leaves a kernel behind, and the kernels are listed; an answer is kept for the process, and
the signature that needed it is kept on disk, so that a source costs this once.
"""

from __future__ import annotations

from typing import Any

_answers: dict[tuple[int, str], bool] = {}
_PREFIX = "acs_has_"


def defined_by(device: Any, names: frozenset[str]) -> frozenset[str] | None:
    """Those of `names` that the compiler of `device` defines, None if it does not say."""
    if device is None:
        return None
    key = device.int_ptr
    unasked = sorted(name for name in names if (key, name) not in _answers)
    if unasked:
        found = _ask(device, unasked)
        if found is None:
            return None
        _answers.update({(key, name): _PREFIX + name in found for name in unasked})
    return frozenset(name for name in names if _answers[key, name])


def _ask(device: Any, names: list[str]) -> set[str] | None:
    import pyopencl as cl

    lines = [f"#ifdef {name}\n__kernel void {_PREFIX}{name}() {{ }}\n#endif" for name in names]
    source = "\n".join([*lines, "__kernel void acs_last() { }", ""])
    try:
        program: Any = cl.Program(cl.Context([device]), source)
        program.build([], devices=[device], cache_dir=False)
        return {kernel.function_name for kernel in program.all_kernels()}
    except cl.Error:
        return None
