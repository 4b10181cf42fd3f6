"""The declarations that OpenCL C promises and that the parser's own headers would bring.

In: what is known of the device. Out: text of a header that is put before every source, and the
macros that it leaves undefined. The wheel of libclang has no OpenCL headers, but it knows the
built-in functions by itself; types, constants and `as_type` are ours. Invariant: a macro that
tells devices apart is defined here exactly if the device's own compiler defines it; the names
that this cannot be said of are refused by `clang.parse`.
"""

from __future__ import annotations

from acs_cl.translate.facts import DeviceFacts

_SCALARS = {
    "char": "char", "uchar": "unsigned char", "short": "short", "ushort": "unsigned short",
    "int": "int", "uint": "unsigned int", "long": "long", "ulong": "unsigned long",
    "float": "float",
}  # fmt: skip
_WIDTHS = (2, 3, 4, 8, 16)

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
#define FP_ILOGB0 INT_MIN
#define FP_ILOGBNAN INT_MAX
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


def text(facts: DeviceFacts, predefined: frozenset[str], undeclared: tuple[str, ...] = ()) -> str:
    """The header for a device. `predefined` are the macros of extensions and features that the
    parser defines by itself; `undeclared` are functions that a source calls and nobody declares."""
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
    lines += [f"#undef {name}" for name in predefined if not _has(facts, name)]
    lines += [f"#define {name} 1" for name in facts.extensions - predefined if name.isidentifier()]
    lines += [f"int {name}(...) __attribute__((overloadable));" for name in undeclared]
    return "\n".join(lines) + "\n"


def _has(facts: DeviceFacts, name: str) -> bool:
    if name.startswith("__opencl_c_"):
        return facts.features is None or name in facts.features
    return name in facts.extensions


def macros(facts: DeviceFacts) -> dict[str, str]:
    """What the device's compiler defines besides extensions and what the parser defines too."""
    out = {
        "__OPENCL_VERSION__": str(facts.version),
        "__opencl_c_named_address_space_builtins": "1",
        "__kernel_exec(X,T)": "__kernel",
        # Two ways of writing the same keyword; the parser only knows the reserved one.
        "asm": "__asm__",
    }
    if facts.images:
        out["__IMAGE_SUPPORT__"] = "1"
    if facts.little_endian:
        out["__ENDIAN_LITTLE__"] = "1"
    if "NVIDIA" in facts.vendor.upper():
        out["__NV_CL_C_VERSION"] = "120"
    return out


# Macros that other languages' compilers define, or those of the vendor named. What else begins
# with two underscores and is tested by a source may or may not be defined by the device.
KNOWN_ABSENT = frozenset(
    {
        "__cplusplus", "__OPENCL_CPP_VERSION__", "__CUDACC__", "__CUDA_ARCH__", "__CUDACC_RTC__",
        "__METAL_VERSION__", "__HIPCC__", "__HIP_DEVICE_COMPILE__", "__SYCL_DEVICE_ONLY__",
    }
)  # fmt: skip
KNOWN_PRESENT = frozenset(
    {
        "__OPENCL_VERSION__", "__OPENCL_C_VERSION__", "__IMAGE_SUPPORT__", "__ENDIAN_LITTLE__",
        "__LINE__", "__FILE__", "__FAST_RELAXED_MATH__", "__NV_CL_C_VERSION",
    }
)  # fmt: skip
VENDOR_PREFIXES = {"__NV": "NVIDIA", "__AMD": "ADVANCED MICRO", "__INTEL": "INTEL"}
