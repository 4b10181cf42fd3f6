"""The declarations that OpenCL C promises and that the parser's own headers would bring.

Input: the facts of the device. Output: text of a header that is put before every source, and
OpenCL's promises about macros, if no compiler can be asked. The wheel of libclang has no OpenCL
headers, but it knows the built-in functions by itself. Types, constants and `as_type` are ours.
Invariant: a macro of the parser's own compiler is undefined here if the device's may not have it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from acs_cl.devices.facts import DeviceFacts

_SCALARS = {
    "char": "char", "uchar": "unsigned char", "short": "short", "ushort": "unsigned short",
    "int": "int", "uint": "unsigned int", "long": "long", "ulong": "unsigned long",
    "float": "float",
}  # fmt: skip
_WIDTHS = (2, 3, 4, 8, 16)

_HIDDEN = """
__has_builtin __has_feature __has_extension __has_attribute __has_c_attribute __has_cpp_attribute
__has_declspec_attribute __has_warning __is_identifier __FILE__ __DATE__ __TIME__ __TIMESTAMP__
__COUNTER__ __BASE_FILE__ __FILE_NAME__ __INCLUDE_LEVEL__
"""
"""Macros of every such compiler, with another meaning in each."""

_CONSTANTS = """
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef uint cl_mem_fence_flags;
#define NULL ((void*)0)
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define CLK_IMAGE_MEM_FENCE 4
#define CLK_NORMALIZED_COORDS_FALSE 0
#define CLK_NORMALIZED_COORDS_TRUE 1
#define CLK_ADDRESS_NONE 0
#define CLK_ADDRESS_CLAMP_TO_EDGE 2
#define CLK_ADDRESS_CLAMP 4
#define CLK_ADDRESS_REPEAT 6
#define CLK_ADDRESS_MIRRORED_REPEAT 8
#define CLK_FILTER_NEAREST 0x10
#define CLK_FILTER_LINEAR 0x20
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX SCHAR_MAX
#define CHAR_MIN SCHAR_MIN
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 0xffffffffU
#define LONG_MAX 0x7fffffffffffffffL
#define LONG_MIN (-0x7fffffffffffffffL - 1)
#define ULONG_MAX 0xffffffffffffffffUL
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_MAX_10_EXP 38
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP -37
#define FLT_MIN_EXP -125
#define FLT_RADIX 2
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1.0p-126f
#define FLT_EPSILON 0x1.0p-23f
#define DBL_DIG 15
#define DBL_MANT_DIG 53
#define DBL_MAX_10_EXP 308
#define DBL_MAX_EXP 1024
#define DBL_MIN_10_EXP -307
#define DBL_MIN_EXP -1021
#define DBL_RADIX 2
#define DBL_MAX 0x1.fffffffffffffp1023
#define DBL_MIN 0x1.0p-1022
#define DBL_EPSILON 0x1.0p-52
#define MAXFLOAT FLT_MAX
#define HUGE_VALF __builtin_huge_valf()
#define HUGE_VAL __builtin_huge_val()
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define ATOMIC_VAR_INIT(x) (x)
#define ATOMIC_FLAG_INIT 0
#define asm __asm__
#define __kernel_exec(X, T) __kernel
#define __opencl_c_named_address_space_builtins 1
#define kernel_exec(X, T) __kernel __attribute__((work_group_size_hint(X, 1, 1), vec_type_hint(T)))
typedef enum memory_scope {
  memory_scope_work_item = __OPENCL_MEMORY_SCOPE_WORK_ITEM,
  memory_scope_work_group = __OPENCL_MEMORY_SCOPE_WORK_GROUP,
  memory_scope_device = __OPENCL_MEMORY_SCOPE_DEVICE,
  memory_scope_all_svm_devices = __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES,
  memory_scope_all_devices = __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES,
  memory_scope_sub_group = __OPENCL_MEMORY_SCOPE_SUB_GROUP
} memory_scope;
typedef enum memory_order {
  memory_order_relaxed = __ATOMIC_RELAXED, memory_order_acquire = __ATOMIC_ACQUIRE,
  memory_order_release = __ATOMIC_RELEASE, memory_order_acq_rel = __ATOMIC_ACQ_REL,
  memory_order_seq_cst = __ATOMIC_SEQ_CST
} memory_order;
#pragma OPENCL EXTENSION __cl_clang_variadic_functions : enable
int printf(__constant const char *format, ...);
"""

_CHANNELS = """
R A RG RA RGB RGBA BGRA ARGB INTENSITY LUMINANCE Rx RGx RGBx DEPTH DEPTH_STENCIL
sRGB sRGBx sRGBA sBGRA ABGR
"""
_CHANNEL_TYPES = """
SNORM_INT8 SNORM_INT16 UNORM_INT8 UNORM_INT16 UNORM_SHORT_565 UNORM_SHORT_555
UNORM_INT_101010 SIGNED_INT8 SIGNED_INT16 SIGNED_INT32 UNSIGNED_INT8 UNSIGNED_INT16
UNSIGNED_INT32 HALF_FLOAT FLOAT UNORM_INT24 UNORM_INT_101010_2
"""
_MATH = {
    "E": 2.718281828459045, "LOG2E": 1.4426950408889634, "LOG10E": 0.4342944819032518,
    "LN2": 0.6931471805599453, "LN10": 2.302585092994046, "PI": 3.141592653589793,
    "PI_2": 1.5707963267948966, "PI_4": 0.7853981633974483, "1_PI": 0.3183098861837907,
    "2_PI": 0.6366197723675814, "2_SQRTPI": 1.1283791670955126, "SQRT2": 1.4142135623730951,
    "SQRT1_2": 0.7071067811865476,
}  # fmt: skip


_OF_STANDARD = {
    "-cl-std=CL2.0": (
        "__opencl_c_generic_address_space", "__opencl_c_read_write_images",
        "cl_khr_3d_image_writes", "cl_khr_depth_images",
    ),
    "-cl-std=CL3.0": ("cl_khr_depth_images",),
}  # fmt: skip
"""Macros without which the parser leaves out functions that are a part of a language. Where a
source asks for one of them, the device's compiler says whether it has it."""


@lru_cache(maxsize=16)
def text(
    facts: DeviceFacts, predefined: frozenset[str], undeclared: tuple[str, ...] = (),
    standard: str = "",
) -> str:  # fmt: skip
    """Return the header for a device. `predefined`: macros that the parser defines by itself.
    `undeclared`: functions that a source calls without a declaration. `standard`: the language, as
    an option."""
    scalars = dict(_SCALARS)
    if "cl_khr_fp64" in facts.extensions or "__opencl_c_fp64" in (facts.features or ()):
        scalars["double"] = "double"
    if "cl_khr_fp16" in facts.extensions:
        scalars["half"] = "half"
    lines = [f"typedef {spelled} {name};" for name, spelled in scalars.items() if spelled != name]
    if "half" in scalars:
        lines.append("#pragma OPENCL EXTENSION cl_khr_fp16 : enable")
    for name in scalars:
        lines.append(f"#define as_{name}(x) __builtin_astype((x), {name})")
        for width in _WIDTHS:
            lines.append(
                f"typedef {name} {name}{width} __attribute__((ext_vector_type({width})));"
                f"\n#define as_{name}{width}(x) __builtin_astype((x), {name}{width})"
            )
    lines.append(_CONSTANTS)
    lines += [f"#define CLK_{name} {0x10B0 + i}" for i, name in enumerate(_CHANNELS.split())]
    lines += [f"#define CLK_{name} {0x10D0 + i}" for i, name in enumerate(_CHANNEL_TYPES.split())]
    for name, value in _MATH.items():
        lines.append(f"#define M_{name} {value!r}\n#define M_{name}_F {value!r}f")
    # The device has another compiler than the parser. So none of the parser's macros stay, except
    # those that turn built-in functions on, which the device decides.
    lines += [f"#undef {name}" for name in _HIDDEN.split()]
    lines += [f"#undef {name}" for name in predefined if not _has(facts, name)]
    more = (facts.extensions - predefined).union(_OF_STANDARD.get(standard, ()))
    lines += [f"#define {name} 1" for name in sorted(more) if name.isidentifier()]
    lines += [f"int {name}(...) __attribute__((overloadable));" for name in undeclared]
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=16)
def macros(header: str) -> frozenset[str]:
    """Return the names that a header defines as macros."""
    return frozenset(re.findall(r"^#define (\w+)", header, re.MULTILINE))


def _has(facts: DeviceFacts, name: str) -> bool:
    if name == "__opencl_c_int64":
        return True
    if name.startswith("__opencl_c_"):
        return facts.features is None or name in facts.features
    return name in facts.extensions


def promised(facts: DeviceFacts, options: Sequence[str], name: str) -> tuple[bool, str | None]:
    """Tell whether OpenCL defines a name in the program of a device, and its text. None: no macro.
    The name itself: the header here defines it."""
    standard = next((word for word in reversed(options) if word.startswith("-cl-std=")), "")
    if name.startswith(_BY_STANDARD) and not standard and facts != DeviceFacts():
        return False, None  # each driver has its own default language
    version = int("".join(re.findall(r"\d", standard)) or "12") * 10
    numbers = {
        "__OPENCL_VERSION__": facts.version, "__OPENCL_C_VERSION__": version,
        "__IMAGE_SUPPORT__": int(facts.images), "__ENDIAN_LITTLE__": int(facts.little_endian),
        "__FAST_RELAXED_MATH__": len({"-cl-fast-relaxed-math", "-ffast-math"} & set(options)),
        "__kernel_exec": 1, "__NV_CL_C_VERSION": 120 * ("NVIDIA" in facts.vendor.upper()),
    }  # fmt: skip
    if name in numbers:
        return True, str(numbers[name]) if numbers[name] else None
    match = re.match(r"CL_VERSION_(\d)_(\d)$", name)
    if match:
        number = 100 * int(match[1]) + 10 * int(match[2])
        return True, str(number) if number <= version else None
    if name.startswith(("cl_", "__opencl_c_")):
        # Some compilers define macros of extensions that their devices do not have.
        return _has(facts, name) or facts == DeviceFacts(), "1" if _has(facts, name) else None
    if name == "__LINE__" or name in macros(text(facts, frozenset())):
        # Constants of samplers and as_type() need not be macros.
        return not name.startswith(("CLK_", "as_")) or facts == DeviceFacts(), name
    vendor = facts.vendor.upper()
    absent = tuple(prefix for prefix, who in VENDOR_PREFIXES.items() if who not in vendor)
    reserved = re.match(r"_[_A-Z]|\?\?=", name)
    return not reserved or name in KNOWN_ABSENT or name.startswith(absent), None


# Macros that compilers of other languages or of the named vendors define. Any other tested name
# with two underscores may or may not be defined by the device.
KNOWN_ABSENT = frozenset(
    {
        "__cplusplus", "__OPENCL_CPP_VERSION__", "__CUDACC__", "__CUDA_ARCH__", "__CUDACC_RTC__",
        "__METAL_VERSION__", "__HIPCC__", "__HIP_DEVICE_COMPILE__", "__SYCL_DEVICE_ONLY__",
    }
)  # fmt: skip
_BY_STANDARD = ("__OPENCL_C_VERSION__", "CL_VERSION_", "__opencl_c_")
VENDOR_PREFIXES = {"__NV": "NVIDIA", "__AMD": "ADVANCED MICRO", "__INTEL": "INTEL"}
