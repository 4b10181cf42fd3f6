"""Compare foreign kernels with their functions, bit by bit, on made-up arguments.

Input: a source that builds, and its translation. Output: for each kernel whether all of its memory
holds the same bytes after the kernel itself and after its function. Invariant: a kernel is compared
only if it gives the same bytes twice by itself. Arguments fit no kernel in particular. They are
small numbers, so that most indices stay inside of memory. A kernel that crashes or hangs on them
counts as not compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from acs_cl.devices.driver import declare_svm

MEMORY_BYTES = 1 << 20
LOCAL_BYTES = 4096
INTEGER, NUMBER, MOST = 4, 1.5, 6
GROUP = 16
RELAXED = {"-cl-fast-relaxed-math", "-cl-unsafe-math-optimizations", "-cl-mad-enable"}
GROUPS = (4, 2)

OWN_CONTEXT = """
    acs_context context;
    for (uint d = 0; d < 3; ++d) {
        context.global_id[d] = get_global_id(d);
        context.local_id[d] = get_local_id(d);
        context.group_id[d] = get_group_id(d);
        context.global_size[d] = get_global_size(d);
        context.local_size[d] = get_local_size(d);
        context.num_groups[d] = get_num_groups(d);
        context.global_offset[d] = get_global_offset(d);
    }
    context.work_dim = get_work_dim();
"""
"""What a kernel gives a function that is to see the kernel's own launch."""

_CALLER = """
__attribute__((reqd_work_group_size({x}, {y}, {z})))
__kernel void acs_caller(__global const uchar *blob, __local uchar *arena) {{
    {context}
    {symbol}(&context, blob, arena);
}}
"""


def compare(context: Any, source: str, words: list[str], found: Any, header: str) -> dict[str, str]:
    """Return for each kernel 'equal', 'different', or why it was not compared."""
    import pyopencl as cl

    queue = cl.CommandQueue(context)
    program: Any = cl.Program(context, source)
    program.build([*words, "-cl-kernel-arg-info"], cache_dir=False)
    outcome = {}
    for name, function in found.functions.items():
        text = "#define ACS_BLOB __global\n" + header + found.text
        for groups in (GROUPS, (1, 1)):
            try:
                types = _types(cl, cl.Kernel(program, name), len(function.fields))
                runs = [_run(cl, queue, program, name, function, types, groups) for _ in range(2)]
                runs.append(_call(cl, queue, text, found.options, function, types, groups))
            except (cl.Error, ValueError, KeyError) as error:
                outcome[name] = f"cannot run: {type(error).__name__}"
                break
            if runs[0] == runs[1] == runs[2]:
                outcome[name] = "equal" if groups == GROUPS else "equal in one group"
                break
            # On such arguments groups may write the same memory, in any order.
            same = runs[0] == runs[1]
            outcome[name] = "different" if same else "gives other results each time"
            if same and RELAXED.intersection(words):
                outcome[name] = "differs where options allow other rounding"
    return outcome


def _types(cl: Any, kernel: Any, count: int) -> list[str]:
    info = cl.kernel_arg_info.TYPE_NAME
    return [str(kernel.get_arg_info(i, info)) for i in range(count)]


def _sizes(function: Any, groups: tuple[int, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    local = function.group_size or (GROUP, 1, 1)
    return (local[0] * groups[0], local[1] * groups[1], local[2]), local


def _bytes(type_name: str, size: int) -> bytes:
    """Make small numbers of a type. A type that is not of floating point counts as integers."""
    dice = np.random.default_rng(size)
    if "float" in type_name or "double" in type_name:
        real = "f4" if "float" in type_name else "f8"
        return dice.uniform(0.5, NUMBER, -(-size // 4)).astype(real).tobytes()[:size]
    kind = "u1" if "char" in type_name else "u8" if "long" in type_name else "u4"
    return dice.integers(0, MOST, size).astype(kind).tobytes()[:size]


def _value(type_name: str, size: int) -> bytes:
    """Make the bytes of a value. All integers get the same one, because they are often sizes."""
    if "float" in type_name or "double" in type_name:
        return np.full(size, NUMBER, "f4" if "float" in type_name else "f8").tobytes()[:size]
    widths = {"char": "u1", "short": "u2", "long": "u8"}
    kind = next((w for part, w in widths.items() if part in type_name), "u4")
    return np.full(size, INTEGER, kind).tobytes()[:size]


def _memory(cl: Any, queue: Any, content: bytes) -> Any:
    array = cl.csvm_empty(queue.context, (len(content),), np.uint8, alignment=0)
    cl.enqueue_copy(queue, cl.SVM(array), np.frombuffer(content, np.uint8).copy())
    return array


def _given(cl: Any, queue: Any, function: Any, types: list[str]) -> list[Any]:
    return [
        _memory(cl, queue, _bytes(name, MEMORY_BYTES)) if field.kind == "pointer" else None
        for field, name in zip(function.fields, types, strict=True)
    ]


def _contents(cl: Any, queue: Any, memories: list[Any]) -> list[bytes]:
    queue.finish()
    out = []
    for one in memories:
        if one is not None:
            values = np.empty(one.shape, one.dtype)
            cl.enqueue_copy(queue, values, cl.SVM(one))
            out.append(values.tobytes())
    return out


def _run(
    cl: Any, queue: Any, program: Any, name: str, function: Any, types: list[str], groups: Any
) -> list[bytes]:
    """Run the kernel itself."""
    memories = _given(cl, queue, function, types)
    kernel = cl.Kernel(program, name)
    for i, (field, memory) in enumerate(zip(function.fields, memories, strict=True)):
        if field.kind == "pointer":
            kernel.set_arg(i, cl.SVM(memory))
        elif field.kind == "local":
            kernel.set_arg(i, cl.LocalMemory(LOCAL_BYTES))
        else:
            kernel.set_arg(i, np.frombuffer(_value(types[i], field.size), np.uint8))
    cl.enqueue_nd_range_kernel(queue, kernel, *_sizes(function, groups))
    return _contents(cl, queue, memories)


def _call(
    cl: Any, queue: Any, text: str, options: Any, function: Any, types: list[str], groups: Any
) -> list[bytes]:
    """Run the kernel as a function of the scheduler."""
    memories = _given(cl, queue, function, types)
    blob = bytearray(max(function.blob_bytes, 16))
    end = function.local_bytes
    for field, memory, name in zip(function.fields, memories, types, strict=True):
        if field.kind == "pointer":
            data = np.uint64(memory.ctypes.data).tobytes()
        elif field.kind == "local":
            end = -(-end // 128) * 128
            data = np.uint32(end).tobytes()
            end += LOCAL_BYTES
        else:
            data = _value(name, field.size)
        blob[field.offset : field.offset + field.size] = data
    sizes, local = _sizes(function, groups)
    x, y, z = local
    text += _CALLER.format(context=OWN_CONTEXT, x=x, y=y, z=z, symbol=function.symbol)
    program: Any = cl.Program(queue.context, text)
    kernel = cl.Kernel(program.build(list(options), cache_dir=False), "acs_caller")
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    packed = cl.Buffer(queue.context, flags, hostbuf=bytes(blob))
    declare_svm(kernel, [one.ctypes.data for one in memories if one is not None])
    kernel.set_args(packed, cl.LocalMemory(max(end, 16)))
    cl.enqueue_nd_range_kernel(queue, kernel, sizes, local)
    return _contents(cl, queue, memories)
