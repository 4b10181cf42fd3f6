"""How a text is written: comments, continued lines, digraphs, letters that are none."""

from __future__ import annotations

from traps.case import Trap, i, mem

_TEXTS = {
    "comment continued": "// off for now: \\\n y[1] = 1;\n y[2] = 2;",
    "comment continued twice": "// off \\\n y[1] = 1; \\\n y[3] = 1;\n y[2] = 2;",
    "comment continued with a space": "// off \\ \n y[1] = 1;\n y[2] = 2;",
    "comment continued by a trigraph": "// off ??/\n y[1] = 1;\n y[2] = 2;",
    "comment with two backslashes": "// off \\\\\n y[1] = 1;\n y[2] = 2;",
    "comment continued to a comment": "// off \\\n // y[1] = 1;\n y[2] = 2;",
    "comment opened by a continued line": "/\\\n/ y[1] = 1;\n y[2] = 2;",
    "comment opened by a continued star": "/\\\n* y[1] = 1;\n*/ y[2] = 2;",
    "comment closed by a continued line": "/* y[1] = 1; *\\\n/ y[2] = 2;",
    "comment in a comment": "/* /* y[1] = 1; */ y[2] = 2; // /* \n y[3] = 3; // */\n",
    "comment of stars": "/**/ y[1] = 1; /***/ y[2] = 2; /****/ /*/ y[3] = 1; /*/ y[4] = 1;",
    "comment with a quote": "/* don't \" */ y[1] = 1; // it's \"\n y[2] = 2;",
    "comment without an end's line": "y[2] = 2; // end",
    "comment behind a backslash": "y[1] = 1; \\\n // y[2] = 1;\n y[3] = 1;",
    "comment in a define": "\n#define Q 7 /* a\n b */ + 2\n y[Q] = 1;",
    "line comment in a define": "\n#define Q 7 // + 20\n y[Q] = 1;",
    "division by a pointer": "int t = 2, *p = &t; y[8/ *p] = 1; y[20/(*p)] = 2;",
    "division and comment": "y[20 //* 2 */ 2\n / 2] = 1;",
    "string with a comment": 'y[sizeof("// \\" /* ")] = 1; y[2] = 2; /* " */ y[3] = 3;',
    "string continued": 'y[sizeof("ab\\\ncd")] = 1;',
    "string with a trigraph": 'y[sizeof("??/")] = 1; y[sizeof("??=") + 9] = 2;',
    "string with a digraph": 'y[sizeof("<:") + 9] = 2;',
    "string of escapes": 'y[sizeof("\\x41\\102\\n\\0\\u00e9")] = 1;',
    "characters": "y['\\''] = 1; y['\"'] = 2; y['\\\\' - 60] = 3;",
    "name continued": "int long\\\n_name = 7; y[long_\\\nname] = 1;",
    "number continued": "y[1\\\n2] = 1; y[0\\\nx1\\\n4] = 2;",
    "keyword continued": "i\\\nf (n > 9) y[1] = 1; e\\\nlse y[2] = 1;",
    "operator continued": (
        "int j = n; j +\\\n= 2; y[j] = 1; j +\\\n+; y[j] = 2; j <\\\n<= 1; y[j] = 3;"
    ),
    "continued with carriage returns": (
        "int j = n; j +\\\r\n= 2; y[j] = 1;\r\n y[2] = 2;\r\n// c \\\r\n y[3] = 3;\r\n"
    ),
    "carriage returns only": "y[2] = 2; // c\r y[3] = 3;\n y[4] = 4;",
    "continued to the end": "y[2] = 2; \\\n\\\n\\\n y[3] = 1;",
    "continued with a tab": "int j = 1\\\t\n2; y[j] = 1;",
    "brackets by digraphs": "y<:7:> = 1; y<:9] = 2;",
    "braces by digraphs": "if (n > 9) <% y[1] = 1; %> else <% y[2] = 1; %>",
    "digraph or less": "y[(n<:0:>y) & 7] = 1;",
    "brackets by trigraphs": "y??(7??) = 1;",
    "braces by trigraphs": "if (n > 9) ??< y[1] = 1; ??> y[2] = 1;",
    "operators by trigraphs": "y[(5 ??' 3) + (8 ??! 1)] = 1; y[??-0 + 9] = 2;",
    "letters": "int été = 7; y[été] = 1;",
    "letters by name": "int \\u00e9t = 7; y[\\u00e9t] = 1;",
    "letters both ways": "int \u00e9t = 7; y[\\u00e9t] = 1;",
    "Greek": "float δ = 1.5f, β = δ * 4; y[(int)β] = 1;",
    "letters before an edit": "/* äöüß€𝄞 */ y[n] = 1; /* ☃ */ y[9] = 2;",
    "letters in a string": 'y[sizeof("ä€")] = 1; y[9] = 2;',
    "dollars": "int a_ = 3; y[a_] = 1;",
    "form feed": "y[1] = 1;\f y[2]\v = 2;",
    "spaces": "y [ n ] = 1 ; y[9]=2;y [\n\n 3 \t ] \n = \n 4\n;",
    "no spaces": "int a=n;y[a---1]=1;y[a+++1]=2;y[a]=3;y[a- -1]=4;",
    "greedy": "int a = n, b = 2; y[a+++b] = 1; y[a---b] = 2; y[a] = 3; y[b - - -b + 9] = 4;",
    "greedy shifts": "int a = n; a<<=1; y[a>>=1] = 1; y[(a<-1) + 9] = 2; y[a>>1<<1] = 3;",
    "number and dot": "float f = 1.; y[(int)(1.+f)] = 1; y[(int)(.5+f) + 9] = 2; y[(int)1.e0] = 3;",
    "number with an exponent": "y[(int)1e1] = 1; y[(int)0x1.8p2] = 2;",
    "member of a vector": (
        "int4 v = (int4)(1, 2, 3, n); y[v.w] = 1; y[v.even.y + 9] = 2; y[v.hi.x + 20] = 3;"
    ),
    "member by number": (
        "float16 v = (float16)(n); y[(int)v.sA] = 1; y[(int)v.sf + 9] = 2; y[(int)v.S1 + 20] = 3;"
    ),
    "vector literal": (
        "int4 v = (int4)((int2)(1, 2), 3, n); y[v.s3] = 1; y[((int2)(n))[1] + 9] = 2;"
    ),
    "cast or vector": (
        "int2 v = (int2)n; y[v.y] = 1; int2 w = (int2)(n, 7); y[w.y] = 2; y[((int2)(3, 9)).y + 20]"
        " = 3;"
    ),
    "comma or vector": "int j = (3, 7); y[j] = 1; int2 v = (int2)((1, 2), (3, 9)); y[v.y] = 2;",
    "declaration chain": (
        "int a = 3, *b = &a, c[2] = {9, 20}, (*d)[2] = &c; y[*b] = 1; y[(*d)[1]] = 2; y[c[0]] = 3;"
    ),
    "unsigned alone": (
        "unsigned a = n; signed b = -3; long long_ = 9; unsigned char c = 260 + n; y[a] = 1; y[b +"
        " 9] = 2; y[c] = 3; y[long_ + 20] = 4;"
    ),
    "types in odd order": (
        "int unsigned a = n; char unsigned b = 260 + n; long int unsigned c = 20; const int static_"
        " = 9; int const d = 30; y[a] = 1; y[b] = 2; y[c] = 3; y[static_] = 4; y[d] = 5;"
    ),
    "spaces of pointers": (
        "int global *p = y; global int *private q = y + 9; __global int *const r = y + 20; *p = 1;"
        " *q = 2; *r = 3;"
    ),
    "double underscores": (
        "__global int *__restrict p = y; __private int j = n; p[j] = 1; __const int k = 9; p[k]"
        " = 2;"
    ),
    "auto and register": "auto int a = 3; register int b = n; y[a] = 1; y[b] = 2;",
    "extension": "__extension__ int a = 3; y[__extension__ (a + n)] = 1;",
    "real": "y[__alignof__(n)] = 1;",
    "local typedef": (
        "typedef int n_; { typedef char n_; y[sizeof(n_)] = 1; } y[sizeof(n_) + 9] = 2;"
    ),
    "shadowed parameter": "{ int n = 7; y[n] = 1; { int n = 9; y[n] = 2; } y[n] = 3; } y[n] = 4;",
    "shadowed array": (
        "{ int y[9]; y[0] = 3; (void)y[0]; } y[n] = 4; { global int *p = y; global int *y = p + 9;"
        " y[1] = 2; }"
    ),
    "shadowed by itself": "int m = n; { int m = sizeof m; y[m + 20] = 2; } y[m] = 1;",
    "shadowed in a for": (
        "int j = 9; for (int j = 0; j < 3; j++) { y[j] = 1; int k = j; { int j = k + 20; y[j] = 2;"
        " } } y[j] = 3;"
    ),
    "shadowed type": "{ int uint = 7; y[uint] = 1; } { int int2 = 9; y[int2] = 2; }",
    "shadowed built-in": "{ int min = 7; y[min] = 1; } y[min(n, 9)] = 2;",
    "label named as a variable": "int out = 7; if (n > 3) goto out; y[1] = 1; out: y[out] = 2;",
    "tag named as a variable": "struct n { int a; } m = {7}; y[m.a] = 1; y[n] = 2;",
    "member named as a variable": (
        "struct { int n, y; } s = {7, 9}; y[s.n] = 1; y[s.y] = 2; y[n] = 3;"
    ),
    "enumerator shadows": "{ enum { n = 7 }; y[n] = 1; } y[n] = 2;",
    "macro shadows": "\n#define n 7\n y[n] = 1;\n#undef n\n y[n] = 2;",
    "old keyword names": "int kernel_ = 3, main = 7; y[main] = 1; y[kernel_] = 2;",
    "names of C++": (
        "int class = 3, new = 7, template = 9, this = 20; y[class] = 1; y[new] = 2; y[template] ="
        " 3; y[this] = 4;"
    ),
    "names of ours": (
        "int acs_when = 3, acs_count = 7, acs_counted = 9, acs_upto = 11, acs_fault = 13, acs_group"
        " = 15, acs_when_at = 17; y[acs_when] = 1; y[acs_count] = 2; y[acs_counted] = 3;"
        " y[acs_upto] = 4; y[acs_fault] = 5; y[acs_group + acs_when_at] = 6;"
    ),
    "long line": "y[" + "1 + " * 200 + "n - 200] = 1;",
    "many lines": "\n" * 300 + "y[n] = 1;" + "\n" * 50 + "y[__LINE__ & 63] = 2;",
    "binary text": "y[n] = 1; /* \x01\x02\x7f */ y[9] = 2;",
    "byte order mark": "y[n] = 1; /* \ufeff */ y[9] = 2;",
    "wide spaces": "y[n] = 1; //\u00a0\u2003 \\\n y[9] = 2;\n y[3] = 3;",
    "nested parentheses": "((((y)))[(((n)))]) = ((1)); (*((&(y[(9)])))) = (2);",
    "pragma in a body": (
        "\n#pragma OPENCL FP_CONTRACT OFF\n y[n] = 1;\n#pragma nothing at all\n y[9] = 2;"
    ),
    "pragma before a block": (
        "for (int j = 0; j < 3; j++)\n#pragma unroll\n for (int l = 0; l < 2; l++) y[j * 5 + l]"
        " = 1;"
    ),
    "pragma before a loop": "\n#pragma unroll 2\nfor (int j = 0; j < 3; j++) y[j * 5] = 1;\n",
    "pragma of clang": (
        "\n#pragma clang loop unroll(disable)\nfor (int j = 0; j < 3; j++) y[j * 5] = 1;\n"
    ),
    "attribute statement": (
        "switch (n) { case 5: y[1] = 1; __attribute__((fallthrough)); case 6: y[2] = 1; }"
    ),
    "attribute of a variable": (
        "int j __attribute__((aligned(16))) = 7; y[j] = 1; int __attribute__((unused)) l = 9; y[l]"
        " = 2;"
    ),
    "attribute of a type": (
        "typedef int __attribute__((aligned(2))) I; global I *p = (global I *)y; p[n] = 1;"
    ),
    "assembly": 'y[n] = 1; asm volatile("" ::: "memory"); y[9] = 2;',
    "assembly with a value": 'int j = n; asm("" : "+r"(j)); y[j] = 1;',
    "static assert": '_Static_assert(sizeof(int) == 4, "int"); y[n] = 1;',
    "generic selection": (
        "y[_Generic(n, int: 7, float: 30)] = 1; y[_Generic(1.0f, int: 30, float: 9, default: 40)]"
        " = 2;"
    ),
    "generic selection of a place": "_Generic(n, float: y + 30, int: y)[n] = 1;",
    "generic selection not evaluated": "int j = 3; y[_Generic(j++, int: 7)] = 1; y[j] = 2;",
    "typeof": "__typeof__(n) j = 7; y[j] = 1; typeof(y) p = y + 9; *p = 2;",
    "typeof not evaluated": "int j = 3; __typeof__(j++) l = 9; y[j] = 1; y[l] = 2;",
    "typeof of an index": "__typeof__((uchar)1) j = 250; j += n + 9; y[j] = 1;",
    "auto type": "__auto_type j = (uchar)250; j += n + 9; y[j] = 1;",
    "choose": (
        "y[__builtin_choose_expr(1, 7, 30)] = 1; int j = 3; __builtin_choose_expr(0, j++, 0); y[j]"
        " = 2;"
    ),
    "same types": (
        "y[__builtin_types_compatible_p(int, signed) + 3] = 1; y[__builtin_types_compatible_p(int,"
        " long) + 9] = 2;"
    ),
    "vec_step": (
        "int3 v = 1; y[vec_step(v)] = 1; y[vec_step(int8) + 9] = 2; int j = 3; y[vec_step(j++) +"
        " 20] = 1; y[j] = 3;"
    ),
    "object size": (
        "int a[4], j = 3; y[__builtin_object_size(a, 0) & 31] = 1;"
        " (void)__builtin_object_size((j++, a), 0); y[j] = 2; (void)a;"
    ),
    "alignof not evaluated": (
        "int j = 3; y[__alignof__(j++) + 9] = 1; y[sizeof(j += 5) + 20] = 1; y[j] = 2;"
    ),
    "assume not evaluated": "int j = 3; __builtin_assume(j++ > 0); y[j] = 2;",
    "classify": "y[__builtin_classify_type(1.0f) & 31] = 1;",
    "comma of nothing": "(void)0, (void)(y[n] = 1), y[9] = 2;",
    "offset of an expression": (
        "struct s { char a; int b[9]; }; y[__builtin_offsetof(struct s, b[2])] = 1;"
    ),
    "offset by a macro": (
        "\n#define O(t, m) __builtin_offsetof(t, m)\nstruct s { char a; int b[9]; }; y[O(struct s,"
        " b[2])] = 1; y[O(struct s, b[n]) - 9] = 2;"
    ),
    "offset by a variable": (
        "struct s { char a; int b[9]; }; int j = 3; y[__builtin_offsetof(struct s, b[j])] = 1;"
        " y[__builtin_offsetof(struct s, b[(uchar)(n + 253)]) + 20] = 2;"
    ),
    "case of a character": (
        "switch ('a' + n - 5) { case 'a': y[1] = 1; break; case '\\x62': y[2] = 1; }"
    ),
    "case of an enumerator": (
        "enum { A = 3, B = A + 2 }; switch (n) { case A: y[1] = 1; break; case B: y[2] = 1; }"
    ),
    "case of a size": "switch (n - 1) { case sizeof(int): y[1] = 1; break; default: y[2] = 1; }",
    "initialiser of a designated array": (
        "const int t[] = {[3] = 7, 9, [0] = 1}; y[t[4]] = 1; y[t[3]] = 2; y[t[0] + 20] = 3;"
        " y[sizeof t] = 4;"
    ),
    "initialiser of a range": "int t[8] = {[2 ... 5] = 7}; y[t[4]] = 1; y[t[6]] = 2;",
    "string initialiser": 'char t[] = "abc"; y[sizeof t] = 1; y[t[1] & 31] = 2;',
    "zero initialiser": "int t[4] = {0}; y[t[3]] = 1; int4 v = {1, 2, 3, n}; y[v.w] = 2;",
}

_OUTSIDE = {
    "text before": ("\ufeff", ""),
    "comment continued before": ("// \\\nkernel void k(global int *y, int n) { y[1] = 1; }\n", ""),
    "comment behind": ("", "// kernel void k(global int *y) { }\n/* kernel void k */"),
    "kernel in a string": (
        'constant char t[] = "kernel void k(global int *y, int n) { y[1] = 1; }";\n',
        "",
    ),
    "kernel in skipped text": (
        "#if 0\nkernel void k(global int *y, int n) { y[1] = 1; }\n#endif\n",
        "",
    ),
    "kernel in a macro that is not used": (
        "#define Q kernel void k(global int *y, int n) { y[1] = 1; }\n",
        "",
    ),
    "declared before": ("kernel void k(global int *y, int n);\n", ""),
    "declared before with other names": ("kernel void k(global int *a, int b);\n", ""),
    "declared before with an attribute": (
        "__attribute__((reqd_work_group_size(1, 1, 1))) kernel void k(global int *y, int n);\n",
        "",
    ),
    "declared twice": (
        "kernel void k(global int *, int); kernel void k(global int *y, int m);\n",
        "",
    ),
    "declared behind": ("", "\nkernel void k(global int *y, int n);\n"),
    "declared in another": (
        "kernel void k(global int *y, int n); kernel void j(global int *y) { k(y, 3); }\n",
        "",
    ),
    "names that contain it": (
        (
            "kernel void kk(global int *y) { y[0] = 1; } void k_(void) { } kernel void _k(global"
            " int *y) { y[1] = 1; }\n"
        ),
        "\nkernel void k1(global int *y) { y[2] = 1; }\n",
    ),
    "type named as it": ("struct k { int k; }; enum e { e_k };\n", ""),
    "macro named as it": ("#define j(k) k\n", ""),
    "variable named as it": ("void f(int k) { k++; }\n", ""),
    "letters before": ('/* äöüß€𝄞 */ // é\nconstant char t[] = "äö";\n', ""),
    "semicolons": (";;;", ";;;"),
    "pragma before": (
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma OPENCL FP_CONTRACT ON\n",
        "",
    ),
    "pragma behind": ("", "\n#pragma OPENCL EXTENSION all : disable\n"),
    "constants before": ("constant int A = 7, B[] = {1, 2}; __constant float C = 1.5f;\n", ""),
    "names of ours": (
        (
            "#define acs_when 3\n#define acs_count 5\n#define acs_counted 7\nint"
            " acs_get_global_size(int a) { return a; }\n"
        ),
        "",
    ),
    "kernel named as ours": (
        (
            "kernel void k__acs_when(global int *y) { y[1] = 1; } kernel void k__acs_size(global"
            " int *y) { y[1] = 1; }\n"
        ),
        "\nkernel void k__acs_offset_0(global int *y) { y[1] = 1; }\n",
    ),
    "helper named as ours": (
        "void acs_k(global int *y) { y[1] = 1; } void task_k(global int *y) { }\n",
        "",
    ),
    "uint defined": ("#define uint char\n#define ulong char\n", ""),
    "return defined": ("#define return y[60] = 1; return\n", ""),
    "if defined": ("#define if(x) if (!(x) == 0 && 1)\n", ""),
    "global defined": ("#define __global_ __global\n#define private_\n", ""),
    "size defined": ("#define get_global_id(x) (n)\n#define get_global_offset(x) 99\n", ""),
    "barrier defined": ("#define barrier(x)\n", ""),
    "const defined": ("#define const\n", ""),
    "char defined": ("#define char int\n", ""),
}

TRAPS: list[Trap] = [
    *(
        Trap(name, f"kernel void k(global int *y, int n) {{ {text} }}\n", (mem(), i(5)))
        for name, text in _TEXTS.items()
    ),
    *(
        Trap(
            f"{name} outside",
            f"{before}kernel void k(global int *y, int n)"
            f" {{ y[n] = 1; y[get_global_id(0) + 9] = 2; }}{behind}",
            (mem(), i(5)),
        )
        for name, (before, behind) in _OUTSIDE.items()
    ),
]
