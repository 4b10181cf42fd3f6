"""Macros are expanded as a C preprocessor does it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyopencl as cl
import pytest

from acs_cl.devices.facts import CannotParse
from acs_cl.opencl_c.parse import clang, preprocess
from acs_cl.opencl_c.parse.environment import Environment
from acs_cl.opencl_c.parse.expansion import Expansion, Token
from acs_cl.testing.changing import changed

EXPANDED = {
    "an object": ("#define A b c\nA", "b c"),
    "parts that a macro without brackets joins": ("#define A b ## c\nA", "bc"),
    "an empty argument beside ##": ("#define A(p, q) p ## q x\nA(, ) A(1, ) A(, 2)", "x 1 x 2 x"),
    "numbers that only a preprocessor knows": ("#define A(p) x ## p ## 0\nA(0_)", "x0_0"),
    "an argument that opens a bracket": (
        "#define P (1, 2\n#define A(p) B p, 3)\n#define B(p, q, r) r q p\nA(P)", "3 2 1"
    ),
    "arguments behind the text": ("#define A(p) [p]\n#define B A\nB(1) B (2)", "[1][2]"),
    "a name without brackets": ("#define A(p) [p]\nA + A(1)", "A + [1]"),
    "a macro in its own text": ("#define A B + A\n#define B A\nA", "A + A"),
    "a macro in its own argument": ("#define A(p) [p]\nA(A(A(1)))", "[[[1]]]"),
    "a name that stays": ("#define A(p) p B\n#define B A\nA(1)(2)", "1 A(2)"),
    "a string of an argument": (
        '#define A(p) #p\nA( "a\\n"  B ) A()', '"\\"a\\\\n\\" B" ""'
    ),
    "a name that is final, as a part of another": (
        "#define A A\n#define J(p) p ## B\n#define K(p) J(p)\n#define AB 1\nK(A) K(A)", "1 1"
    ),
    "a string of what was expanded": (
        "#define B +\n#define S(p) #p\n#define A(p) S(p)\nA(B()a)", '"+()a"'
    ),
    "a string behind an expansion": (
        "#define P(p) p\n#define S(p) #p\n#define A(p) S(p)\nA(P(1)a)", '"1a"'
    ),
    "written and expanded": ("#define B 2\n#define A(p) #p x##p p\nA(B)", '"B" xB 2'),
    "arguments without a name": (
        "#define A(p, ...) p __VA_ARGS__;\nA(1) A(1, 2, 3)", "1 ; 1 2, 3;"
    ),
    "a comma that goes": ("#define A(p, ...) (p, ## __VA_ARGS__)\nA(1) A(1, 2)", "(1)(1, 2)"),
    "an expansion in front of a number": ("#define A(p) p\n#define B A(c)1 A(c)d\nB", "c 1 c d"),
    "arguments on several lines": ("#define A(p, q) q p\nA(1,\n2)", "2 1"),
    "the line of a call": ("#define A(p) p B\n#define B __LINE__\n\nA(__LINE__\n)", "4 4"),
    "a counter": ("__COUNTER__ __COUNTER__", "0 1"),
    "an argument that is used twice": ("#define A(p) p p\nA(__COUNTER__)", "0 0"),
}  # fmt: skip


def expanded(source: str) -> str:
    text, _, _ = preprocess.preprocess(source, (), Environment(None, ()))
    return " ".join(text.split())


@pytest.mark.parametrize("what", EXPANDED)
def test_macros_are_expanded_as_the_language_says(what: str) -> None:
    source, wanted = EXPANDED[what]
    assert re.sub(r"\s*([^\w\s\"])\s*", r"\1", expanded(source)) == re.sub(
        r"\s*([^\w\s\"])\s*", r"\1", wanted
    )


def test_a_condition_does_not_change_the_macros_that_it_asks_for() -> None:
    source = "#define A defined B\n#if A\nno\n#endif\nA\n#define B\n#if A\nyes\n#endif\n"
    assert expanded(source) == "defined B yes"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("#define A(p) p\nA(1, 2)", "A takes 1 arguments, got 2"),
        ("#define A(p, q) p\nA(1)", "A takes 2 arguments, got 1"),
        ("#define A(p, q, ...) p\nA(1)", "A takes 3 arguments, got 1"),
        ("\n#define A(p) p\nA(1", "line 3: the arguments of A do not end"),
    ],
)
def test_a_call_of_a_macro_that_is_none_is_refused(source: str, why: str) -> None:
    with pytest.raises(CannotParse, match=re.escape(why)):
        expanded(source)


def test_the_text_around_a_macro_is_not_read_again() -> None:
    """pcpp read it once more for each macro around it, and a mining program took a minute."""
    many, depth = 64, 12
    lines = ["#define L0(p) " + "p + 1;" * many]
    lines += [f"#define L{n}(p) do {{ L{n - 1}(p) }} while (0);" for n in range(1, depth)]
    made: list[int] = []

    def counted(self: Expansion, given: Sequence[Token], line: int = 0) -> list[Token]:
        found = expand(self, given, line)
        made.append(len(found))
        return found

    expand = Expansion.expanded
    with changed(Expansion, "expanded", counted):
        text = expanded("\n".join([*lines, f"L{depth - 1}(x)"]))
    assert text.count("x + 1;") == many
    assert sum(made) < 10 * many


def test_what_it_makes_means_the_same(device: cl.Device) -> None:
    source = """
    #define STEP(w0, w1, f, s) do { f(s, w0); f(s, w1); } while (0)
    #define STEP_(w, f, s) STEP w, f, s)
    #define W(a) (x[a], x[a + 1]
    #define W_0_0 W(0)
    #define W_0_1 W(2)
    #define ADD(s, w) s += w
    #define ROUND(i) STEP_(W_ ## i ## 0, ADD, sum); STEP_(W_ ## i ## 1, ADD, sum)
    kernel void k(global int *x) { int sum = 0; ROUND(0_); x[get_global_id(0)] = sum; }
    """
    plain = preprocess.plain_unit(source, (), device)
    assert "STEP" not in plain.text.partition("kernel")[2]
    assert [*plain.unit.kernels] == ["k"]
    assert clang.parse(plain.text, (), device).kernels
