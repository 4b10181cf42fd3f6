"""Kernels as applications have them, on one work-item: several rules of C meet in each."""

from __future__ import annotations

from traps.case import Trap, i, mem

# One work-item; `n` is 5 and `m` is -3.
_ALONE: dict[str, tuple[str, str]] = {
    "pointer to a pointer to a pointer": (
        "void f$(global int ***p, int n) { **p += n; *p += 1; }",
        "global int *a[2] = {y, y + 20}; global int **b = a; f$(&b, n); **b = 1; a[0][2] = 2;",
    ),
    "helper sets one of two": (
        "void f$(int w, global int **p, global int **q) { if (w) *p = *q + 2; else *q = *p + 3; }",
        "global int *p = y + 1, *q = y + 30; f$(n > 9, &p, &q); *q = 1; f$(n, &p, &q); p[4] = 2;",
    ),
    "pointer from a table of pointers": (
        "global int *f$(global int **t, int k) { return t[k] + k; }",
        "global int *t[4]; for (int k = 0; k < 4; k++) t[k] = y + 13 * k; *f$(t, 2) = 1;"
        " *f$(t, n & 3) = 2;",
    ),
    "list of pointers in a structure": (
        "struct N$ { global int *at; struct N$ *next; };",
        "struct N$ a = {y + 3, 0}, b = {y + 20, &a}, c = {y + 40, &b};"
        " for (struct N$ *p = &c; p; p = p->next) *p->at = 7;",
    ),
    "iterator structure": (
        "struct I$ { global int *now, *end; int step; };"
        " int more$(struct I$ *i) { return i->now < i->end; }"
        " void next$(struct I$ *i) { i->now += i->step; i->step++; }",
        "for (struct I$ i = {y, y + 40, 2}; more$(&i); next$(&i)) *i.now = i.step;",
    ),
    "iterator backwards": (
        "struct I$ { global int *now; int left; };",
        "struct I$ i = {y + 50, n}; while (i.left-- > 0) { *i.now = i.left; i.now -= i.left + 1; }",
    ),
    "matrix structure": (
        "typedef struct { global int *data; int rows, columns, pitch; } M$;"
        " global int *at$(const M$ *m, int r, int c) { return &m->data[r * m->pitch + c]; }"
        " M$ part$(M$ m, int r, int c) { M$ s = m; s.data = at$(&m, r, c); s.rows -= r;"
        " s.columns -= c; return s; }",
        "M$ a = {y, 6, 5, 9}; M$ b = part$(a, 2, 1);"
        " for (int r = 0; r < b.rows; r++) for (int c = 0; c < b.columns; c++)"
        " *at$(&b, r, c) = r - c;",
    ),
    "matrix structure transposed": (
        "typedef struct { global int *p; int a, b; } V$; V$ t$(V$ v) { V$ w = {v.p, v.b, v.a};"
        " return w; }",
        "V$ v = t$((V$){y, 9, 1}); for (int r = 0; r < 3; r++) for (int c = 0; c < 5; c++)"
        " v.p[r * v.a + c * v.b] = r;",
    ),
    "bitmap": (
        "void set$(global int *b, uint i) { b[i >> 5] |= 1u << (i & 31); }"
        " int get$(global int *b, uint i) { return b[i >> 5] >> (i & 31) & 1; }",
        "for (uint i = 40; i < 300; i += 77) if (!get$(y, i)) set$(y + 20, i); set$(y, 33u * n);",
    ),
    "ring buffer": (
        "void push$(global int *ring, int *head, int v) { ring[*head] = v; *head = (*head + 1) %"
        " 12; }",
        "int h = n + 4; for (int k = 0; k < 6; k++) push$(y + 8, &h, k); y[h] = 9;",
    ),
    "ring buffer by a mask": (
        "",
        "uint h = 0u - 3u; for (int k = 0; k < n; k++) y[h++ & 15] = k; y[(h & 15) + 32] = 1;",
    ),
    "heap down": (
        "",
        "int k = 0, e = 40; while (2 * k + 1 < e) { int c = 2 * k + 1; if (c + 1 < e && y[c + 1] >"
        " y[c]) c++; int t = y[k]; y[k] = y[c]; y[c] = t; k = c; }",
    ),
    "heap up": (
        "",
        "int k = 37; while (k > 0) { int p = (k - 1) / 2; if (y[p] >= y[k]) { y[k] = 3; break; }"
        " y[p] = y[k] + 1; k = p; }",
    ),
    "binary search": (
        "int f$(global const int *a, int n, int v) { int lo = 0, hi = n; while (lo < hi) { int mid"
        " = lo + (hi - lo) / 2; if (a[mid] < v) lo = mid + 1; else hi = mid; } return lo; }",
        "y[f$(y + 8, 40, 99) + 10] = 1;",
    ),
    "binary search by halves": (
        "",
        "int p = 0; for (int s = 32; s; s >>= 1) if (y[p + s - 1] < 0) p += s; y[p] = 1;",
    ),
    "insertion sort": (
        "",
        "global int *a = y + n; for (int k = 1; k < 8; k++) { int v = a[k], j = k; for (; j > 0 &&"
        " a[j - 1] > v; j--) a[j] = a[j - 1]; a[j] = v; }",
    ),
    "bit reversed copy": (
        "",
        "for (uint k = 0; k < 16; k++) { uint r = (k & 1) << 3 | (k & 2) << 1 | (k & 4) >> 1 | (k &"
        " 8) >> 3; if (r > k) { int t = y[k]; y[k] = y[r]; y[r] = t + 1; } }",
    ),
    "sieve": (
        "",
        "for (int p = 2; p * p < 50; p++) if (p & 1 || p == 2) for (int k = p * p; k < 50; k += p)"
        " y[k] = 0;",
    ),
    "union find": (
        "int root$(global int *p, int x) { int k = 0; while (k++ < 9 && (p[x] & 31) != x) x = p[x]"
        " & 31; return x; }",
        "int a = root$(y, n), b = root$(y, n + 9); y[a + 32] = b;",
    ),
    "look-up of a look-up": (
        "constant uchar next$[8] = {3, 5, 7, 0, 1, 2, 4, 6};",
        "uchar c = n; for (int k = 0; k < 4; k++) { c = next$[c & 7]; y[c * 3 + k] = 1; }",
    ),
    "state machine": (
        "enum S$ { IDLE$, RUN$, STOP$ };",
        "enum S$ s = IDLE$; int k = 0; for (int t = 0; t < 9; t++) switch (s) { case IDLE$: y[k] ="
        " 1; s = RUN$; k += 3; break; case RUN$: y[k++] = 2; if (k > 6) s = STOP$; break; case"
        " STOP$: y[k + 20] = 3; s = IDLE$; k += 5; }",
    ),
    "interpreter": (
        'constant char code$[] = "2+3-4*1/";',
        "int a = n; for (int k = 0; code$[k]; k++) switch (code$[k]) { case '+': a += 7; break;"
        " case '-': a -= 4; break; case '*': a *= 2; break; case '/': y[a] = k; a /= 3; break;"
        " default: y[code$[k] - '0' + 50] = a; }",
    ),
    "Duff on a shifted pointer": (
        "",
        "global int *to = y + 20, *from = y; int k = (n + 3) / 4; switch (n % 4) { case 0: do {"
        " *to++ = *from++; case 3: *to++ = *from++; case 2: *to++ = *from++; case 1: *to++ ="
        " *from++; } while (--k > 0); }",
    ),
    "once by a macro": (
        "#define PUT$(i, v) do { y[i] = (v); if ((v) > 3) break; y[(i) + 30] = 1; } while (0)\n",
        "PUT$(n, 2); PUT$(n + 1, 9); if (n > 3) PUT$(0, 1); else PUT$(2, 1);",
    ),
    "list of cases by a macro": (
        "#define ALL$(X) X(0, 3) X(1, 9) X(2, 27)\n",
        "\n#define ONE$(k, v) case k: y[v] = k; break;\nswitch (n - 4) { ALL$(ONE$) }\n#define"
        " TWO$(k, v) y[v + 1] = k;\nALL$(TWO$)\n",
    ),
    "kernel parts by pasting": (
        "#define MAKE$(name, op) void name##_of$(global int *p, int a, int b) { p[a op b] = 1; }\n"
        "MAKE$(sum, +) MAKE$(left, <<) MAKE$(both, &)\n",
        "sum_of$(y, n, 3); left_of$(y, n, 2); both_of$(y + 30, n, 4);",
    ),
    "generic macro": (
        "#define SWAP$(T, a, b) { T t_ = a; a = b; b = t_; }\n",
        "global int *p = y + 3, *q = y + 40; int a = 1, b = 9; SWAP$(global int *, p, q)"
        " SWAP$(int, a, b) p[a] = 1; q[b] = 2;",
    ),
    "comma in a for": (
        "",
        "int a, b; for (a = 0, b = n; a < b; a++, b += (a & 1)) y[a * 3] = b, y[b + 30] = a;",
    ),
    "comma gives a pointer": ("", "int k = 3; (k += n, y + k)[k++, k + 1] = 1; *(y, y + k) = 2;"),
    "comma in a return": (
        "int f$(int *k) { return *k += 4, *k * 2; }",
        "int k = n; y[f$(&k)] = 1; y[k] = 2;",
    ),
    "conditional pointer in a loop": (
        "",
        "for (int k = 0; k < 8; k++) { global int *p = k & 2 ? y + k : y + 40 - k; p[k % 3] = 1; }",
    ),
    "conditional pointer by data": (
        "",
        "global int *p = (y[0] & 1) ? &y[n] : &y[40]; p[(y[1] & 1) ? 2 : 7] = 1;",
    ),
    "conditional address of a conditional": (
        "",
        "int a = 3, b = 20; *(n > 4 ? &a : &b) = 50; y[a] = 1; *(n > 5 ? &a : &b) = 11; y[b] = 2;",
    ),
    "nested ternaries with effects": (
        "",
        "int k = n, t = k++ > 4 ? k++ > 6 ? k += 9 : (k += 20) : (k += 30); y[k] = 1; y[t + 1] ="
        " 2;",
    ),
    "unsigned countdown": ("", "for (uint k = 6; k != ~0u; k--) y[k * 4] = k;"),
    "unsigned countdown by two": ("", "for (uint k = 9; k < 10; k -= 2) y[k] = k;"),
    "size_t countdown": (
        "",
        "for (size_t k = n; k--;) y[k + 9] = 1; for (size_t k = 4; k + 1 > 0; --k) y[k + 30] = 2;",
    ),
    "char loop that wraps": (
        "",
        "int t = 0; for (char k = 120; k > 0 && t < 20; k++, t++) y[k - 100] = t;",
    ),
    "counter changed by its bound": (
        "",
        "int e = 20; for (int k = 0; k < e; k += 2, e -= 1) y[k] = e; y[e + 30] = 1;",
    ),
    "counter changed in a helper": (
        "int f$(int *k, int by) { *k += by; return *k; }",
        "for (int k = 0; f$(&k, 1) < 30; f$(&k, 3)) y[k] = 1;",
    ),
    "counter from two loops": (
        "",
        (
            "int k = 0; for (; k < 10; k += 3) y[k] = 1; for (; k < 40; k += k / 2) y[k] = 2; "
            "y[k] = 3;"
        ),
    ),
    "bound is a product that wraps": (
        "",
        "int t = 0; for (uint k = 0; k < (uint)n * 858993460u; k++) { y[k & 31] = 1; if (++t > 9)"
        " break; }",
    ),
    "long product that wraps": (
        "",
        "long a = 0x100000001l; ulong b = (ulong)a * a; y[(b >> 32) + 3] = 1; y[b & 15] = 2;"
        " y[(ulong)(a * m) % 61] = 3;",
    ),
    "ulong index that wraps": (
        "",
        "ulong big = 1ul << 63; y[big * 2 + 7] = 1; y[(big + 9) * 2 & 63] = 2; y[-(-9ul)] = 3;",
    ),
    "int index of a long product": (
        "",
        "long p = (long)n << 33; y[(int)(p + 7)] = 1; y[(int)(p >> 31)] = 2; y[(uint)(p / n) + 3u]"
        " = 3;",
    ),
    "signed rests": (
        "",
        "y[m % 2 + 9] = 1; y[(m % n + n) % n + 20] = 2; y[-m % n + 30] = 3; y[(m - n) / 3 + 40] ="
        " 4; y[(m - n) >> 1 & 63] = 5;",
    ),
    "rest by a negative": ("", "for (int k = -6; k < 6; k++) y[(k % m + 3) * 6 + k / m + 3] = 1;"),
    "shift by data": ("", "y[1 << (y[3] & 5)] = 1; y[(256 >> (y[4] & 7)) & 63] = 2;"),
    "shift by its own": ("", "uint s = 1; for (int k = 0; k < 5; k++) { y[s & 63] = k; s <<= s; }"),
    "mirror at a border": (
        "int f$(int k, int e) { if (k < 0) k = -k - 1; if (k >= e) k = 2 * e - 1 - k; return k; }",
        "for (int k = m; k < 20 + n; k += 2) y[f$(k, 20) + 9] = 1;",
    ),
    "wrap at a border": (
        "int f$(int k, int e) { k %= e; return k < 0 ? k + e : k; }",
        "for (int k = -9; k < 30; k += 7) y[f$(k, 13) + 20] = 1;",
    ),
    "clamp at a border": (
        "",
        "for (int k = m; k < 14; k += 2) y[clamp(k, 0, 9) + 4] = k; y[clamp(y[0], 20, 29)] = 1;",
    ),
    "mirror by abs": (
        "",
        "for (int k = m; k < 12; k++) { int j = abs(k); j = 9 - abs(9 - j); y[j + 8] = 1; }",
    ),
    "halves of a word": (
        "",
        "global ushort *h = (global ushort *)(y + 4); for (int k = 0; k < n; k++) h[2 * k + 1] = k;"
        " ((global uchar *)h)[40 - n] = 1;",
    ),
    "bytes of a structure": (
        "typedef struct { uchar tag; ushort len; uint at; } R$;",
        "global R$ *r = (global R$ *)y; r[n].len = 3; r[2].tag = r[3].at; r[n + 1] = r[0];",
    ),
    "packed structure": (
        "typedef struct __attribute__((packed)) { uchar tag; uint at; ushort len; } R$;",
        "global R$ *r = (global R$ *)y; r[n].at = 3; r[2].len = r[3].tag; (r + 9)->tag = 1;",
    ),
    "array in a structure in an array": (
        "typedef struct { int n; struct { short a[3]; char b; } c[2]; } R$;",
        "global R$ *r = (global R$ *)y; r[1].c[n & 1].a[2] = 7; r[3].c[0].b = r[2].c[1].a[n - 4];",
    ),
    "address of a member": (
        "typedef struct { int n; float f[4]; } R$; void f$(global float *p) { p[2] = 1; }",
        "global R$ *r = (global R$ *)y; f$(r[n].f); global int *q = &r[2].n; q[1] = 3;",
    ),
    "distance of members": (
        "typedef struct { int n; char c; short s[3]; } R$;",
        "global R$ *r = (global R$ *)y; y[(global char *)&r->s[2] - (global char *)r] = 1;"
        " y[sizeof(R$)] = 2; y[__builtin_offsetof(R$, s) + 30] = 3;",
    ),
    "copy of a structure by parts": (
        "typedef struct { int a, b; } P$;",
        "P$ t[3]; global P$ *p = (global P$ *)y; for (int k = 0; k < 3; k++) t[k] = p[k * 4];"
        " p[20] = t[1]; p[21].b = t[2].a;",
    ),
    "union of words": (
        "typedef union { uint w; uchar b[4]; struct { ushort lo, hi; } h; } U$;",
        "U$ u; u.w = 0x00070103; u.b[1] += n; y[u.h.lo >> 8] = 1; y[u.h.hi] = 2; y[u.w & 31] = 3;",
    ),
    "float bits as an index": (
        "",
        "for (int k = 1; k < 20; k *= 2) y[(as_uint((float)k) >> 23) - 120] = k;",
    ),
    "logarithm by clz": ("", "for (uint k = 1; k < 4000; k = k * 3 + 1) y[31 - clz(k)] = k;"),
    "square root as an index": ("", "for (int k = 0; k < 40; k++) y[(int)sqrt((float)k)] = k;"),
    "float walk": ("", "float x = n; while (x < 60.0f) { y[(int)x] = 1; x = x * 1.5f + 0.25f; }"),
    "vectors at offsets": (
        "",
        "int4 v = vload4(1, y + 3); vstore4(v.wzyx, 2, y + n); vstore3(v.xyz, 3, y + 1);"
        " vstore2(v.hi, 20, y); y[60] = vload2(n, y + 1).y;",
    ),
    "vectors of bytes": (
        "",
        "global uchar *b = (global uchar *)y; uchar16 v = vload16(n, b + 3); vstore8(v.odd, 9, b +"
        " 1); vstore4(v.s89ab, 40, b + n);",
    ),
    "halves at offsets": (
        "",
        "global half *h = (global half *)y; vstore_half(1.0f, n, h + 3); vstore_half4((float4)(2),"
        " 3, h + n); vstore_half2((float2)(3), 30, h);",
    ),
    "vectors in a loop": (
        "",
        "for (int k = 0; k + 4 <= 20; k += 4) vstore4(vload4(0, y + k) + 1, 0, y + k); int k = 20;"
        " switch (n & 3) { case 3: y[k++]++; case 2: y[k++]++; case 1: y[k++]++; }",
    ),
    "components as indices": (
        "",
        "int4 v = (int4)(n, n + 9, m, 40); v.xz = v.zx; v.x += 20; y[v.x] = 1; y[v.z] = 2;"
        " v.even = (int2)(50, 51); y[v.z] = 3; y[v.lo.y] = 4;",
    ),
    "pointer to a vector's parts": (
        "",
        (
            "global int4 *v = (global int4 *)y; v[2].zw = (int2)(1, 2); v[n].s0 = 3; v[7].odd = "
            "v[6].lo;"
        ),
    ),
    "vector comparison as a mask": (
        "",
        (
            "int4 k = (int4)(0, 1, 2, 3) + n; k = select(k, (int4)(40), k > 6); y[k.x] = 1; "
            "y[k.w] = 2;"
        ),
    ),
    "atomic by a helper": (
        "int take$(volatile global int *c, int by) { return atomic_add(c, by); }",
        "y[3] = 0; int a = take$(y + 3, n), b = take$(y + 3, 2); y[a + 10] = 1; y[b + 20] = 2;",
    ),
    "atomic maximum of floats": (
        "void f$(volatile global float *p, float v) { union { uint i; float f; } a, b; do { a.f ="
        " *p; b.f = fmax(a.f, v); } while (atomic_cmpxchg((volatile global uint *)p, a.i, b.i) !="
        " a.i); }",
        "y[n] = 0; f$((global float *)y + n, 2.0f);",
    ),
    "goto out of a switch in a loop": (
        "",
        "for (int k = 0; k < 9; k++) { switch (k) { case 2: continue; case 5: goto out; default:"
        " y[k] = 1; } y[k + 20] = 2; } out: y[40] = 3;",
    ),
    "goto into a loop": (
        "",
        "int k = 3; goto in; for (k = 0; k < 6; k++) { y[k] = 1; in: y[k + 20] = 2; }",
    ),
    "goto as a loop of two": (
        "",
        "int a = 0, b = 0; one: if (a > 3) goto two; y[a * 4 + b] = 1; a++; goto one; two: a = 0;"
        " if (++b < 3) goto one; y[a + b + 40] = 2;",
    ),
    "fallthrough sums": (
        "",
        "int k = 0; switch (n) { default: k += 40; case 7: k += 1; break; case 5: k += 2; case 3: k"
        " += 4; } y[k] = 1; switch (m) { case -3 ... -1: y[k + 9] = 2; }",
    ),
    "switch in a helper": (
        "int f$(int c) { switch (c & 3) { case 0: return 3; case 1: c += 9; break; case 2: return"
        " c; } return c * 2; }",
        "for (int k = 0; k < 8; k++) y[f$(k)] = k;",
    ),
    "while with a break in a switch": (
        "",
        "int k = 0; while (1) { switch (k) { case 4: break; default: y[k] = 1; k++; continue; }"
        " break; } y[k + 9] = 2;",
    ),
    "loop with two ends": (
        "",
        "int k; for (k = 0; k < 40; k += 7) { if (y[k] == 123456) break; if (k > 30) goto end; y[k]"
        " = 1; } y[k] = 2; end: y[k + 3] = 3;",
    ),
    "value kept over turns": (
        "",
        "int last = -1, k = 0; for (; k < 30; k += 4) { if (last >= 0) y[last] = k; last = k ^ 2; }"
        " y[last + 1] = 9; y[k] = 8;",
    ),
    "smallest so far": (
        "",
        (
            "int best = 0; for (int k = 1; k < 16; k++) if (y[k] < y[best]) best = k; y[best + "
            "20] = 1;"
        ),
    ),
    "count then write": (
        "",
        "int c = 0; for (int k = 0; k < 16; k++) c += (y[k] & 1); for (int k = 0; k < c; k++) y[k +"
        " 20] = 1; y[c + 40] = 2;",
    ),
    "compact": (
        "",
        (
            "global int *to = y + 20; for (int k = 0; k < 16; k++) if (y[k] > 0) *to++ = y[k]; "
            "*to = 0;"
        ),
    ),
    "two heads meet": (
        "",
        "global int *a = y + 4, *b = y + 30; while (a < b) { if (*a > *b) a++; else b--; } *a = 1;",
    ),
    "private table of indices": (
        "",
        "uchar t[16]; for (int k = 0; k < 16; k++) t[k] = k * 11; for (int k = 0; k < n; k++) t[k]"
        " = t[k + 1]; y[t[2] & 63] = 1; y[t[n] & 63] = 2;",
    ),
    "private stack": (
        "",
        "int s[8], top = 0; s[top++] = 1; while (top) { int k = s[--top]; y[k] = top; if (2 * k <"
        " 16) { s[top++] = 2 * k; s[top++] = 2 * k + 1; } }",
    ),
    "private rows": (
        "",
        "int t[3][4]; for (int a = 0; a < 3; a++) for (int b = 0; b < 4; b++) t[a][b] = a * 16 + b;"
        " int *p = &t[1][2]; y[p[3]] = 1; y[t[2][n - 4]] = 2; y[*(p - 3)] = 3;",
    ),
    "number through memory": ("", "y[9] = n + 2; y[y[9]] = 1; y[10] = y[9] * 2; y[y[10]] = 2;"),
    "volatile counter": ("", "volatile int k = 0; while (k < n) { y[k * 2] = 1; k++; }"),
    "const through a cast": (
        "constant int t$[4] = {2, 3, 5, 7};",
        "const int k = t$[n & 3]; y[k] = 1; y[t$[k & 3] * 2] = 2; y[(&t$[1])[1] + 20] = 3;",
    ),
    "string as a table": ("", 'constant char *s = "\\3\\11\\24"; y[s[0]] = 1; y[s[n - 3]] = 2;'),
    "sizes of types": (
        "",
        "y[sizeof(int3)] = 1; y[sizeof(long) + sizeof(half)] = 2; y[sizeof(y)] = 3; y[sizeof *y +"
        " sizeof(int[5])] = 4;",
    ),
    "pointer kept in a number": (
        "",
        "ulong a = (ulong)y, b = (ulong)(y + 9); global int *p = (global int *)(a + (b - a) * 2);"
        " p[n] = 1; *(global int *)(b ^ 0) = 2;",
    ),
    "aligned upwards": (
        "",
        "global char *p = (global char *)y; p += (n + 15) & ~15; *p = 1; p += (16 - (n & 15)) & 15;"
        " *p = 2;",
    ),
    "negative subscript of a moved pointer": (
        "",
        "global int *e = y + 40; e[m] = 1; e[-n] = 2; (e - 20)[m + n] = 3; *(m + e) = 4; m[e - 9]"
        " = 5;",
    ),
    "pointers compared": (
        "",
        "for (global int *p = y + 30, *q = y; p != q; p -= 6) *p = 1; for (global int *p = y; p <="
        " y + 12; p += 5) p[40] = 2;",
    ),
    "uninitialised on one path": (
        "",
        "int k; if (y[0] & 1) k = 3; else if (y[0] & 2) k = 9; else { k = 20; y[k + 1] = 3; } y[k]"
        " = 1;",
    ),
    "variable of two loops": (
        "",
        "for (int a = 0; a < 4; a++) { int s = 0; for (int b = a; b < 6; b++) { s += b; y[s] = 1; }"
        " y[s + 20] = 2; }",
    ),
    "triangle numbers": ("", "for (int k = 0, t = 0; t < 60; t += ++k) y[t] = k;"),
    "powers by squares": (
        "",
        "uint b = 3, e = 13, r = 1; for (; e; e >>= 1, b *= b) { if (e & 1) r *= b; y[r & 63] = 1;"
        " }",
    ),
    "greatest common divisor": (
        "int f$(int a, int b) { while (b) { int t = a % b; a = b; b = t; } return a; }",
        "y[f$(36, 60)] = 1; y[f$(n * 9, 27)] = 2; y[f$(n, 7) + 20] = 3;",
    ),
    "random walk of ints": (
        "uint f$(uint *s) { *s ^= *s << 13; *s ^= *s >> 17; *s ^= *s << 5; return *s; }",
        "uint s = n; for (int k = 0; k < 6; k++) y[f$(&s) % 61u] = k; y[f$(&s) >> 26] = 9;",
    ),
    "Morton order": (
        "uint f$(uint x) { x = (x | x << 2) & 0x33u; return (x | x << 1) & 0x55u; }",
        "for (uint a = 0; a < 4; a++) for (uint b = 0; b < 3; b++) y[f$(a) | f$(b) << 1] = a;",
    ),
    "Hilbert order": (
        "",
        "for (int d = 0; d < 16; d += 3) { int rx, ry, t = d, x = 0, z = 0; for (int s = 1; s < 4;"
        " s *= 2) { rx = 1 & (t / 2); ry = 1 & (t ^ rx); if (!ry) { if (rx) { x = s - 1 - x; z = s"
        " - 1 - z; } int u = x; x = z; z = u; } x += s * rx; z += s * ry; t /= 4; } y[z * 4 + x] ="
        " d; }",
    ),
    "chain of helpers with a switch": (
        "int c$(int n) { return n < 3 ? 9 : 12; } int b$(int n) { switch (n) { case 5: return c$(n)"
        " + c$(n - 3); default: return c$(0); } } void a$(global int *p, int n) { p[b$(n)] = 1;"
        " p[b$(n + 1)] = 2; }",
        "a$(y, n); a$(y + 20, n + m);",
    ),
    "helper of a helper's pointer": (
        "global int *b$(global int *p, int n) { while (n-- > 0) p += 2; return p; } global int"
        " *a$(global int *p, int n) { return b$(b$(p, n), n - 3) - 1; }",
        "*a$(y, n) = 1; a$(y + 9, 3)[4] = 2;",
    ),
    "helper with an early end in a loop": (
        "int f$(global int *p, int e) { for (int k = 0; k < e; k++) { if (p[k] > 90000) return k;"
        " p[k + 30] = 1; } return -1; }",
        "y[f$(y, n * 2) + 60] = 1;",
    ),
    "helper writes through const": (
        "void f$(global const int *p, int k) { ((global int *)p)[k] = 1; }",
        "f$(y, n); f$(y + 20, n + m);",
    ),
    "helper by a macro of the same name": (
        "int f$(int k) { return k + 20; }\n#define f$(k) f$(k * 2)\n",
        "y[f$(n)] = 1; y[f$(n + 1)] = 2;",
    ),
}

TRAPS: list[Trap] = [
    *(
        Trap(
            name,
            f"{before}\nkernel void k$(global int *y, int n, int m) {{ {text} }}",
            (mem(), i(5), i(-3)),
        )
        for name, (before, text) in _ALONE.items()
    ),
]
