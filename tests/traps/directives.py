"""Conditions of the preprocessor: what the driver's compiler takes and a parser may not.

`AT` is defined to an element by each text; the kernel writes it, and another one if the text was
read otherwise.
"""

from __future__ import annotations

from traps.case import Trap, i, mem

_KERNEL = "kernel void k(global int *y, int n) { y[AT] = 5; y[AT + 1] += 3; }\n"


def _if(condition: str, first: str = "") -> str:
    return f"{first}\n#if {condition}\n#define AT 40\n#else\n#define AT 7\n#endif\n"


# Conditions on what each compiler defines, or believes.
_ASKED = [
    "__OPENCL_C_VERSION__ >= 200",
    "__OPENCL_C_VERSION__ == 120",
    "__OPENCL_VERSION__ >= 200",
    "__OPENCL_C_VERSION__ > 120 && __OPENCL_VERSION__ > 120",
    "CL_VERSION_2_0 == 200",
    "defined(CL_VERSION_3_0)",
    "defined CL_VERSION_1_0 && CL_VERSION_1_0 == 100",
    "defined(__x86_64__)",
    "defined __x86_64__ && __x86_64__",
    "__x86_64__",
    "defined(__aarch64__)",
    "defined(__LP64__)",
    "defined(_LP64)",
    "_LP64",
    "__SIZEOF_POINTER__ == 8",
    "__SIZEOF_LONG__ == 8",
    "__clang__",
    "__clang_major__ >= 15",
    "__clang_major__ == 14",
    "__GNUC__ >= 4",
    "__GNUC_MINOR__ == 2",
    "defined(__NV_CL_C_VERSION)",
    "defined(__CUDA_ARCH__)",
    "defined(__SPIR__)",
    "defined(__SPIR64__)",
    "defined(__SPIRV__)",
    "defined(__AMDGCN__)",
    "defined(__OPENCL_CPP_VERSION__)",
    "defined(POCL_DEVICE_ADDRESS_BITS)",
    "POCL_DEVICE_ADDRESS_BITS == 64",
    "defined(__POCL__)",
    "defined(PoCL)",
    "defined(__IMAGE_SUPPORT__)",
    "__IMAGE_SUPPORT__",
    "defined(__ENDIAN_LITTLE__)",
    "__ENDIAN_LITTLE__",
    "__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__",
    "defined(__FAST_RELAXED_MATH__)",
    "__STDC__",
    "__STDC_VERSION__ >= 199901L",
    "__STDC_HOSTED__",
    "__OPTIMIZE__",
    "defined(__OPTIMIZE__)",
    "defined(NDEBUG)",
    "defined(__linux__)",
    "defined(linux)",
    "defined(unix)",
    "defined(__unix__)",
    "defined(__ELF__)",
    "defined(__SSE2__)",
    "defined(__AVX2__)",
    "defined(__AVX512F__)",
    "defined(__FMA__)",
    "__CHAR_BIT__ == 8",
    "__INT_MAX__ == 2147483647",
    "__LONG_MAX__ > 2147483647",
    "__BIGGEST_ALIGNMENT__ == 16",
    "__FLT_EVAL_METHOD__ == 0",
    "__FINITE_MATH_ONLY__",
    "__NO_INLINE__",
    "defined(__NO_INLINE__)",
    "__CHAR_UNSIGNED__",
    "defined(__OBJC__)",
    "defined(__cplusplus)",
    "defined(__BLOCKS__)",
    "defined(__kernel_exec)",
    "defined(kernel_exec)",
    "defined(kernel)",
    "defined(__kernel)",
    "defined(inline)",
    "defined(bool)",
    "defined(true)",
    "true",
    "defined(NULL)",
    "defined(half)",
    "defined(uint)",
    "defined(CLK_LOCAL_MEM_FENCE)",
    "CLK_LOCAL_MEM_FENCE == 1",
    "CLK_GLOBAL_MEM_FENCE == 2",
    "defined(M_PI)",
    "defined(M_PI_F)",
    "defined(INFINITY)",
    "defined(NAN)",
    "INT_MAX == 2147483647",
    "defined(UINT_MAX)",
    "CHAR_BIT == 8",
    "defined(FLT_EPSILON)",
    "FLT_DIG == 6",
    "defined(DBL_MAX)",
    "defined(HALF_MAX)",
    "defined(MAXFLOAT)",
    "defined(CLK_FILTER_NEAREST)",
    "defined(printf)",
    "defined(as_int)",
    "defined(cl_khr_fp64)",
    "cl_khr_fp64",
    "defined(cl_khr_fp16)",
    "defined(cl_khr_int64_base_atomics)",
    "defined(cl_khr_3d_image_writes)",
    "defined(cl_khr_subgroups)",
    "defined(cl_khr_gl_sharing)",
    "defined(cl_khr_byte_addressable_store) && cl_khr_byte_addressable_store",
    "defined(cl_khr_nothing)",
    "defined(cl_intel_subgroups)",
    "defined(cl_nv_pragma_unroll)",
    "defined(cl_clang_storage_class_specifiers)",
    "defined(cl_khr_spir)",
    "defined(cl_khr_icd)",
    "defined(cl_pocl_content_size)",
    "defined(__opencl_c_images)",
    "defined(__opencl_c_fp64)",
    "defined(__opencl_c_int64)",
    "defined(__opencl_c_generic_address_space)",
    "defined(__opencl_c_program_scope_global_variables)",
    "defined(__opencl_c_atomic_order_acq_rel)",
    "defined(__opencl_c_pipes)",
    "defined(__opencl_c_subgroups)",
    "__has_builtin(__builtin_memcpy)",
    "__has_builtin(__builtin_nothing)",
    "__has_feature(attribute_overloadable)",
    "__has_extension(statement_exprs)",
    "__has_attribute(cleanup)",
    "__has_attribute(opencl_unroll_hint)",
    "__has_include(<stddef.h>)",
    '__has_include("opencl-c.h")',
    "defined(__has_builtin)",
    "defined __has_include",
    "defined(__has_c_attribute)",
    "__is_identifier(kernel)",
    "__is_identifier(nothing)",
    "__INCLUDE_LEVEL__",
    "__INCLUDE_LEVEL__ > 0",
    "__COUNTER__ == 0",
    "__COUNTER__ > 3",
    "__LINE__ == 2",
    "__LINE__ < 20",
    "defined(__FILE__)",
    "defined(__DATE__)",
    "defined(__TIMESTAMP__)",
    "defined(__BASE_FILE__)",
    "defined(_MSC_VER)",
    "defined(_WIN32)",
    "defined(__APPLE__)",
    "defined(__EMSCRIPTEN__)",
    "defined(cl_amd_fp64)",
    "__APPLE_CC__",
    "defined(__VERSION__)",
    "defined(__OPENCL_H__)",
    "defined(__CLANG_OPENCL_C_H_)",
    "defined(_OPENCL_H_)",
    "defined(_CLANG_KERNEL_H)",
    "defined(__kernel_h)",
    "defined(__undef)",
]

# What a preprocessor computes: each is true for a right one, or false for a right one.
_COMPUTED = {
    "unsigned": "-1 > 0u",
    "unsigned by suffix": "-1 > 0U && -1ull > 5",
    "signed": "-1 < 0",
    "hexadecimal is signed": "-1 < 0xffffffff",
    "greatest": "0xffffffffffffffff == -1",
    "greatest is unsigned": "0xffffffffffffffff > 0",
    "wide shift": "1 << 40 > 5",
    "left of a negative": "-1 << 4 == -16",
    "right of a negative": "-16 >> 2 == -4",
    "right unsigned": "(-16u >> 60) == 15",
    "quotient of a negative": "-7 / 2 == -3",
    "rest of a negative": "-7 % 4 == -3",
    "unsigned quotient": "-8u / 2 > 100",
    "character": "'a' == 97",
    "character sign": "'\\xff' < 0",
    "character sign by octal": "'\\377' == -1",
    "character escape": "'\\n' == 10 && '\\0' == 0",
    "two characters": "'ab' == 24930",
    "wide character": "L'a' == 97",
    "octal": "010 == 8",
    "binary": "0b101 == 5",
    "suffixes": "1uLL + 1Lu + 1l + 1LL == 4",
    "not": "!0 == 1 && !5 == 0",
    "complement": "~0 == -1",
    "complement unsigned": "~0u > 5",
    "precedence": "1 | 2 ^ 3 & 4 == 4",
    "precedence of shifts": "1 + 1 << 2 == 8",
    "ternary": "0 ? 0 : 1",
    "ternary of ternaries": "1 ? 0 ? 0 : 1 : 0",
    "ternary unsigned": "(1 ? -1 : 0u) > 0",
    "ternary skips a division": "1 ? 1 : 1 / 0",
    "and skips a division": "!(0 && 1 / 0)",
    "or skips a division": "1 || 1 % 0",
    "comma in parentheses": "(2, 1)",
    "unknown name": "nothing == 0",
    "unknown name in a sum": "nothing + 1",
    "keyword": "int == 0 && while == 0",
    "true name": "true == 1",
    "false name": "false == 0",
    "defined of defined": "defined(defined_) == 0",
    "defined without parentheses": "!defined X && 1",
    "defined twice": "defined X + defined(Y) == 0",
    "minus minus": "- -1 == 1",
    "plus plus": "+ + 1",
    "not not": "! ! 3",
    "not a negative": "!-1 == 0",
    "equal chain": "(1 == 1 == 1) && (3 > 2 > 1) == 0",
    "comment inside": "1 /* \n && 0 */ == 1",
    "comment behind": "1 // && 0",
    "continued": "1 \\\n && \\\n 1",
    "continued name": "defi\\\nned(X) == 0",
    "continued number": "1\\\n0 == 10",
    "tabs": "\t1\t==\t1\t",
    "no space": "(1)==(1)&&!(0)",
    "very large": "9223372036854775807 > 0",
    "division": "7/2==3",
    "unsigned minus": "0u - 1 > 0",
    "mixed or": "(-1 | 0u) > 0",
    "unsigned comparison chain": "-1 < 1u",
    "digraph in a name": "defined(X) <: 1",
}

_DEFINED_BEFORE = {
    "macro in a condition": ("#define Q 1", "Q"),
    "macro of a macro": ("#define P 3\n#define Q P", "Q == 3"),
    "compiler's behind a macro": ("#define Q __x86_64__", "Q"),
    "version behind a macro": ("#define Q __OPENCL_C_VERSION__", "Q >= 200"),
    "compiler's pasted": ("#define P(a, b) a##b", "P(__x86, _64__)"),
    "version pasted": ("#define P(a, b) a##b", "P(__OPENCL_C_, VERSION__) == 120"),
    "defined in a macro": ("#define Q defined(__x86_64__)", "Q"),
    "defined pasted": ("#define D(x) defined(x)", "D(Q)"),
    "function macro": ("#define Q(x) (x + 1)", "Q(2) == 3"),
    "function macro of none": ("#define Q() 1", "Q()"),
    "function macro without parentheses": ("#define Q(x) 1", "defined Q && !defined(R)"),
    "empty macro": ("#define Q", "Q + 1"),
    "macro to a comparison": ("#define Q 1 <", "Q 2"),
    "macro to an operator": ("#define AND &&", "1 AND 1"),
    "macro to a parenthesis": ("#define O (\n#define C )", "O 1 C == 1"),
    "self": ("#define Q Q", "Q == 0"),
    "mutual": ("#define P Q\n#define Q P", "P == 0"),
    "undefined again": ("#define Q 1\n#undef Q", "!Q"),
    "defined again": ("#define Q 1\n#undef Q\n#define Q 2", "Q == 2"),
    "defined twice the same": ("#define Q 1\n#define Q 1", "Q"),
    "version undefined": ("#undef __OPENCL_C_VERSION__", "__OPENCL_C_VERSION__ == 0"),
    "version defined": (
        "#undef __OPENCL_C_VERSION__\n#define __OPENCL_C_VERSION__ 77",
        "__OPENCL_C_VERSION__ == 77",
    ),
    "platform undefined": ("#undef __x86_64__", "defined(__x86_64__)"),
    "platform defined": ("#undef __x86_64__\n#define __x86_64__ 5", "__x86_64__ == 5"),
    "keyword defined": ("#define int 5", "int == 5\n#undef int"),
    "variadic": ("#define Q(a, ...) (a __VA_ARGS__)", "Q(1, + 1) == 2"),
    "named variadic": ("#define Q(a, b...) (a b)", "Q(1, + 1) == 2"),
    "nested call": ("#define Q(x) x x", "Q(Q(+)) 1"),
    "line": ("#line 500", "__LINE__ == 501"),
    "line behind a macro": ("#define N 500\n#line N", "__LINE__ > 490"),
    "counter": ("#define Q __COUNTER__", "Q == 0 && Q == 1"),
    "push and pop": (
        '#define Q 1\n#pragma push_macro("Q")\n#undef Q\n#define Q 0\n#pragma pop_macro("Q")',
        "Q",
    ),
    "push and pop by operator": (
        '#define Q 1\n_Pragma("push_macro(\\"Q\\")")\n#undef Q\n_Pragma("pop_macro(\\"Q\\")")',
        "Q",
    ),
    "push a compiler's": (
        '#pragma push_macro("__x86_64__")\n#undef __x86_64__\n#pragma pop_macro("__x86_64__")',
        "__x86_64__",
    ),
    "null directive": ("#\n#  \n# /* nothing */", "1"),
    "space before": ("   #   define Q 1\n/* c */ # define R 1", "Q && R"),
    "digraph": ("%:define Q 1", "Q"),
    "continued define": ("#def\\\nine Q 1", "Q"),
    "comment in a define": ("#define /* a */ Q /* b */ 1 /* c", "Q */ == 1"),
    "warning": ("#warning nothing", "1"),
    "ident": ('#ident "x"', "1"),
    "assert": ("#pragma STDC FP_CONTRACT OFF", "1"),
    "extension": ("#pragma OPENCL EXTENSION cl_khr_fp64 : enable", "defined(cl_khr_fp64)"),
    "extension off": ("#pragma OPENCL EXTENSION all : disable", "defined(cl_khr_fp64)"),
    "poison": ("#pragma GCC poison bad_name", "1"),
    "system header": ("#pragma GCC system_header", "1"),
    "diagnostic": (
        (
            '#pragma clang diagnostic push\n#pragma clang diagnostic ignored "-Wall"\n#pragma clang'
            " diagnostic pop"
        ),
        "1",
    ),
}

_STRUCTURES = {
    "skipped garbage": "#if 0\nthis is ' not \" a program #error\n#else\n#define AT 7\n#endif\n",
    "skipped apostrophe": "#if 0\ndon't /* won't */ do this\n#endif\n#define AT 7\n",
    "skipped comment": "#if 0\n/*\n#else\n#define AT 30\n*/\n#else\n#define AT 7\n#endif\n",
    "skipped open comment": "#if 1\n#define AT 7 /*\n#else\n#define AT 30 */\n#endif\n",
    "skipped error": '#if 0\n#error no\n#include "nothing.h"\n#unknown\n#endif\n#define AT 7\n',
    "elif behind true": "#if 1\n#define AT 7\n#elif 1 / 0\n#define AT 30\n#endif\n",
    "elif garbage": "#if 1\n#define AT 7\n#elif ) this is wrong (\n#define AT 30\n#endif\n",
    "elif chain": (
        "#define Q 3\n#if Q == 1\n#define AT 1\n#elif Q == 2\n#define AT 2\n#elif Q == 3\n#define"
        " AT 7\n#elif Q == 3\n#define AT 4\n#else\n#define AT 5\n#endif\n"
    ),
    "elifdef": (
        "#define Q\n#if 0\n#define AT 1\n#elifdef Q\n#define AT 7\n#else\n#define AT 30\n#endif\n"
    ),
    "elifndef": "#if 0\n#define AT 1\n#elifndef Q\n#define AT 7\n#else\n#define AT 30\n#endif\n",
    "nested": (
        "#if 1\n#if 0\n#define AT 1\n#else\n#ifdef Q\n#define AT 2\n#else\n#define AT"
        " 7\n#endif\n#endif\n#else\n#if 1\n#define AT 3\n#endif\n#endif\n"
    ),
    "nested in skipped": (
        "#if 0\n#if 1\n#define AT 3\n#else\n#define AT 4\n#endif\n#else\n#define AT 7\n#endif\n"
    ),
    "ifdef with more": (
        "#define Q\n#ifdef Q and more\n#define AT 7\n#else\n#define AT 30\n#endif more\n"
    ),
    "ifdef of a compiler's": "#ifdef __x86_64__\n#define AT 40\n#else\n#define AT 7\n#endif\n",
    "ifndef of a compiler's": "#ifndef __clang__\n#define AT 40\n#else\n#define AT 7\n#endif\n",
    "ifdef by digraph": "%:ifdef __x86_64__\n#define AT 40\n%:else\n#define AT 7\n%:endif\n",
    "ifdef by trigraph": "??=ifdef __x86_64__\n#define AT 40\n#else\n#define AT 7\n#endif\n",
    "if with a continued name": (
        "#ifdef __x86_\\\n64__\n#define AT 40\n#else\n#define AT 7\n#endif\n"
    ),
    "if on the next line": (
        "#if \\\ndefined(__x86_64__)\n#define AT 40\n#else\n#define AT 7\n#endif\n"
    ),
    "if in a comment": "/*\n#if 0\n*/\n#define AT 7\n/*\n#endif\n*/\n",
    "if in a string": 'constant char text[] = "\\\n#if 0\\\n";\n#define AT 7\n',
    "if behind a comment": (
        "/* a */ #if 0 /* b\n*/\n#define AT 30\n/* c */ #else // d\n#define AT 7\n#endif\n"
    ),
    "if inside of the kernel": (
        "#define AT 7\nkernel void other(global int *y) {\n#if 0\n y[0] = 1;\n#endif\n}\n"
    ),
    "endif without a line's end": "#define AT 7\n",
    "guarded twice": (
        "#ifndef G\n#define G\n#define AT 7\n#endif\n#ifndef G\n#define AT 30\n#endif\n"
    ),
    "carriage returns": "#if 1\r\n#define AT 7\r\n#else\r\n#define AT 30\r\n#endif\r\n",
    "form feeds": "\f#if 1\n#define\vAT 7\n#else\n#define AT 30\n#endif\n",
    "undefined in the middle": "#define AT 30\n#undef AT\n#define AT 7\n",
    "defined by an expression": "#define AT (__LINE__ * 3)\n",
    "defined by line": "#line 7\n#define AT __LINE__\n",
    "defined by counter": "#define AT __COUNTER__ + 3\n",
    "defined by version": "#define AT (__OPENCL_C_VERSION__ / 100 * 5)\n",
    "defined by clang": "#define AT (__clang_major__)\n",
    "defined by clang minor": "#define AT (__clang_minor__ + 3)\n",
    "defined by clang patch": "#define AT (__clang_patchlevel__ + 3)\n",
    "defined by alignment": "#define AT __BIGGEST_ALIGNMENT__\n",
    "defined by a file": "#define AT (sizeof(__FILE__) & 15)\n",
    "defined by a base file": "#define AT (sizeof(__BASE_FILE__) & 15)\n",
    "defined by a compiler's text": "#define AT (sizeof(__VERSION__) & 15)\n",
    "defined by a date": "#define AT (sizeof(__DATE__) + sizeof(__TIME__))\n",
    "defined by a time stamp": "#define AT (sizeof(__TIMESTAMP__))\n",
    "defined by a name as text": (
        "#define S(x) #x\n#define T(x) S(x)\n#define AT (sizeof(T(__x86_64__)))\n"
    ),
    "defined by a version as text": (
        "#define S(x) #x\n#define T(x) S(x)\n#define AT (sizeof(T(__OPENCL_C_VERSION__)) +"
        " sizeof(S(__clang_major__)))\n"
    ),
    "defined by a pasted version": (
        "#define P(a, b) a##b\n#define Q(a, b) P(a, b)\n#define V120 9\n#define V300 20\n#define"
        " V200 14\n#define AT Q(V, __OPENCL_C_VERSION__)\n"
    ),
    "defined by a builtin": "#define AT (__has_builtin(__builtin_memcpy) ? 20 : 10)\n",
    "defined by a long": "#define AT (sizeof(long) * 2)\n",
    "defined by a pointer": "#define AT (sizeof(void *) + sizeof(size_t) * 3)\n",
    "defined by a half": "#define AT (sizeof(half) * 5)\n",
    "defined by a bool": "#define AT (sizeof(bool) * 5)\n",
    "defined by an event": "#define AT (sizeof(event_t))\n",
    "defined by a long double": "#define AT (sizeof(long double))\n",
    "defined by a character": "#define AT (sizeof('a') + sizeof(\"abc\") + sizeof(L'a'))\n",
    "defined by limits": "#define AT (CHAR_BIT + INT_MAX / 1000000000 + FLT_DIG)\n",
    "defined by fences": "#define AT (CLK_LOCAL_MEM_FENCE * 8 + CLK_GLOBAL_MEM_FENCE)\n",
    "defined by addressing": "#define AT (CLK_ADDRESS_CLAMP & 15)\n",
    "defined by filters": "#define AT (CLK_FILTER_NEAREST & 31)\n",
    "defined by types": "#define AT (CLK_UNSIGNED_INT8 & 15)\n",
    "defined by INT_MIN": "#define AT (INT_MIN / -100000000)\n",
    "defined by fast math": (
        "#ifdef __FAST_RELAXED_MATH__\n#define AT 3\n#else\n#define AT 9\n#endif\n"
    ),
}

_OPTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "value": (("-DAT=7",), ""),
    "value apart": (("-D", "AT=7"), ""),
    "no value": (("-DAT",), ""),
    "empty value": (("-DQ=",), "#define AT 7 Q\n"),
    "an expression": (("-DAT=(3+4)",), ""),
    "last counts": (("-DAT=3", "-UAT", "-DAT=7"), ""),
    "undefined": (("-UAT",), "#ifndef AT\n#define AT 7\n#endif\n"),
    "function like": (("-DF(x)=x+4",), "#define AT F(3)\n"),
    "a name": (("-DAT=Q", "-DQ=7"), ""),
    "a compiler's name": (("-DQ=__x86_64__",), _if("Q")),
    "defined of a compiler's": (("-DQ=defined(__x86_64__)",), _if("Q")),
    "a compiler's version": (("-DQ=__OPENCL_C_VERSION__",), _if("Q > 150")),
    "a compiler's name itself": (("-D__x86_64__=5",), _if("__x86_64__ == 5")),
    "standard 1.1": (("-cl-std=CL1.1",), _if("__OPENCL_C_VERSION__ == 110")),
    "standard 1.2": (("-cl-std=CL1.2",), _if("__OPENCL_C_VERSION__ == 120")),
    "standard 2.0": (("-cl-std=CL2.0",), _if("__OPENCL_C_VERSION__ == 200")),
    "standard 3.0": (("-cl-std=CL3.0",), _if("__OPENCL_C_VERSION__ >= 300")),
    "fast math": (("-cl-fast-relaxed-math",), _if("defined(__FAST_RELAXED_MATH__)")),
    "finite math": (("-cl-finite-math-only",), _if("__FINITE_MATH_ONLY__")),
    "single constants": (("-cl-single-precision-constant",), "#define AT (sizeof(1.0) * 2)\n"),
    "no optimisation": (("-cl-opt-disable",), _if("defined(__OPTIMIZE__)")),
    "unsafe math": (("-cl-unsafe-math-optimizations",), _if("__FAST_RELAXED_MATH__")),
    "warnings": (("-w", "-DAT=7"), ""),
    "errors": (("-Werror", "-DAT=7"), ""),
    "info": (("-cl-kernel-arg-info",), "#define AT 7\n"),
    "quoted": (('-DQ="7"',), "#define AT (Q + 0)\n"),
    "keyword": (("-Dint=long",), "#undef int\n#define AT sizeof(long)\n"),
    "type": (("-DT=double",), "#define AT sizeof(T)\n"),
    "denormals": (("-cl-denorms-are-zero", "-DAT=7"), ""),
    "uniform": (("-cl-mad-enable", "-DAT=7", "-DUNUSED"), ""),
    "debug": (("-g",), _if("defined(NDEBUG)")),
}

_FILES: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "included": ('#include "a.h"\n', (("a.h", "#define AT 7\n"),)),
    "included twice": (
        '#include "a.h"\n#include "a.h"\n#define AT Q\n',
        (("a.h", "#ifndef Q\n#define Q 3\n#else\n#undef Q\n#define Q 7\n#endif\n"),),
    ),
    "included once": (
        '#include "a.h"\n#include "a.h"\n#define AT Q\n',
        (("a.h", "#pragma once\n#ifndef Q\n#define Q 3\n#else\n#undef Q\n#define Q 7\n#endif\n"),),
    ),
    "included by a macro": ('#define F "a.h"\n#include F\n', (("a.h", "#define AT 7\n"),)),
    "included in angles": ("#include <a.h>\n", (("a.h", "#define AT 7\n"),)),
    "included chain": (
        '#include "a.h"\n',
        (("a.h", '#include "b.h"\n#define AT (B + 1)\n'), ("b.h", "#define B 6\n")),
    ),
    "included code": (
        '#define AT 7\n#include "a.h"\n',
        (("a.h", "int f(int n);\nint f(int n) { return n + 3; }\n"),),
    ),
    "included if there": (
        '#if __has_include("a.h")\n#include "a.h"\n#else\n#define AT 30\n#endif\n',
        (("a.h", "#define AT 7\n"),),
    ),
    "included compiler's": ('#include "a.h"\n', (("a.h", _if("__x86_64__")),)),
    "included version": ('#include "a.h"\n', (("a.h", _if("__OPENCL_C_VERSION__ > 150")),)),
    "included level": (
        '#include "a.h"\n',
        (
            (
                "a.h",
                (
                    "#define L __INCLUDE_LEVEL__\n#if L == 1\n#define AT 7\n#else\n#define AT"
                    " 30\n#endif\n"
                ),
            ),
        ),
    ),
    "included line": (
        '#include "a.h"\n#define AT (Q + __LINE__)\n',
        (("a.h", "\n\n\nenum { Q = __LINE__ };\n"),),
    ),
    "included without an end": ('#include "a.h"\n', (("a.h", "#define AT 7"),)),
    "included into an array": (
        'constant int T[] = {\n#include "a.h"\n};\n#define AT T[1]\n',
        (("a.h", "3, 7, 9\n"),),
    ),
    "included with a union": (
        '#include "a.h"\n#define AT 7\n',
        (("a.h", "union u { int a; };\n"),),
    ),
}


def _trap(name: str, text: str, **more: object) -> Trap:
    return Trap(name, text + _KERNEL, (mem(), i(5)), **more)  # type: ignore[arg-type]


TRAPS: list[Trap] = [
    *(_trap(f"asks {condition}", _if(condition)) for condition in _ASKED),
    *(_trap(f"computes {name}", _if(condition)) for name, condition in _COMPUTED.items()),
    *(
        _trap(f"after {name}", _if(condition, first))
        for name, (first, condition) in _DEFINED_BEFORE.items()
    ),
    *(_trap(name, text) for name, text in _STRUCTURES.items()),
    *(_trap(f"option {name}", text, options=options) for name, (options, text) in _OPTIONS.items()),
    *(_trap(name, text, files=files) for name, (text, files) in _FILES.items()),
]
