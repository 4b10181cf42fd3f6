"""Names in a source that only its compiler may have defined.

Input: texts, build options. Output: `Asked`: names that decide what is compiled, reserved names
anywhere else, and questions (`__has_builtin(x)`). Pure: a scan of the text, after the first steps
of the language (trigraphs, continued lines, comments). Invariant: it may find too many names, never
too few, except names that `##` makes. The parser reports these when it meets them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from acs_cl.devices.facts import TRIGRAPH, bare, without_trigraphs

from ...records import NamedTuple

TRIGRAPHS, ELIFDEF = "??=", "#elifdef"
"""Questions that are not about a name: whether trigraphs count, and whether `#elifdef` is known."""

WORD = re.compile(r"[A-Za-z_]\w*")
_RESERVED = re.compile(r"(?<![\w.])(?:_[_A-Z]|CLK_(?!\w*_MEM_FENCE\b))\w*")  # and of OpenCL
_QUESTION = re.compile(r"\b(__has_(?!include|embed|warning)\w+)\s*\(\s*([A-Za-z_]\w*)\s*\)")
_DIRECTIVE = re.compile(r"^[ \t\v\f]*#[ \t\v\f]*([a-z]+)\b(.*)$", re.MULTILINE)
_DEFINITION = re.compile(r"\s*([A-Za-z_]\w*)(?:\(([^)]*)\))?(.*)$")
_MAKES_STRINGS = re.compile(r"(?<!#)#(?!#)")
_OURS = re.compile(r"acs_|ACS_")

_LANGUAGE = """
    __kernel __global __local __constant __private __generic __read_only __write_only __read_write
    __attribute__ __attribute __asm__ __asm __const __const__ __restrict __restrict__ __volatile
    __volatile__ __inline __inline__ __signed __signed__ __alignof __alignof__ __typeof __typeof__
    __extension__ __func__ __FUNCTION__ __VA_ARGS__ __VA_OPT__ _Pragma _Bool
    __aligned__ __packed__ __unroll__ __noinline__ __always_inline__ __reqd_work_group_size__
    __work_group_size_hint__ __vec_type_hint__ __overloadable__ __may_alias__ __unused__
"""
_KEYWORDS = frozenset(_LANGUAGE.split())
"""Reserved names that the language itself defines."""


class Asked(NamedTuple):
    """The names and questions that a text leaves to its compiler."""

    tested: frozenset[str] = frozenset()
    """Names that are tested for being macros."""
    named: frozenset[str] = frozenset()
    """Reserved names anywhere else."""
    questions: frozenset[str] = frozenset()
    """`__has_builtin(x)` and the like; `??=` for trigraphs; `#elifdef` for that and `#elifndef`."""
    unclear: str = ""
    """Why a condition cannot be followed. '': all can."""
    stringizes: bool = False
    """A macro makes strings of its arguments."""

    def joined(self, other: Asked) -> Asked:
        """Join the questions of both."""
        return Asked(
            self.tested | other.tested, self.named | other.named,
            self.questions | other.questions, self.unclear or other.unclear,
            self.stringizes or other.stringizes,
        )  # fmt: skip


def asked(texts: Iterable[str], words: Sequence[str] = ()) -> Asked:
    """Return the names that some texts, and the options `-D` and `-U`, leave to their compiler."""
    lines, given = _options(words)
    found = _Found(given)
    for text in ("\n".join(lines), *texts):
        for version in {text, without_trigraphs(text)}:
            if "#" in version or "%:" in version or _RESERVED.search(version):
                found.look(bare(version))
        if re.search(TRIGRAPH, text):
            found.questions.add(TRIGRAPHS)
    return found.asked()


def words_of(texts: Iterable[str]) -> set[str]:
    """Return the names in texts, without the words of the language."""
    return set(WORD.findall(" ".join(texts))) - _KEYWORDS


def _options(words: Sequence[str]) -> tuple[list[str], set[str]]:
    """Return the definitions among options as lines of a source, and the names that they settle."""
    lines, given = [], set()
    for word in words:
        name = WORD.match(word[2:])
        if name and word[:2] in ("-D", "-U"):
            given.add(name[0])
            head, _, body = word[2:].partition("=")
            lines.append(f"#define {head} {body}" if word[:2] == "-D" else "")
    return lines, given


class _Found:
    """The names found in texts, one text after the other."""

    def __init__(self, given: set[str]) -> None:
        self.questions: set[str] = set()
        self._given = given
        self._tested: set[str] = set()
        self._valued: set[str] = set()  # names in `tested` whose value a condition needs
        self._named: set[str] = set()
        self._made: set[str] = set()
        self._bodies: dict[str, set[str]] = {}
        self._unclear = ""
        self._stringizes = False

    def look(self, text: str) -> None:
        """Scan a text without comments."""
        settled: set[str] = set()  # defined here under all conditions, before any test
        tested: set[str] = set()
        valued: set[str] = set()
        depth = 0
        for name, rest in _DIRECTIVE.findall(text):
            depth += name.startswith("if") - (name == "endif")
            words = WORD.findall(rest)
            if name == "define" and words:
                self._define(rest)
                if not depth and words[0] not in tested:
                    settled.add(words[0])
            elif name in ("if", "elif", "include"):
                valued.update(words)
                tested.update(set(words) - settled)
            elif name in ("ifdef", "ifndef", "elifdef", "elifndef", "undef"):
                tested.update(set(words[:1]) - settled)
                if name.startswith("elif"):
                    self.questions.add(ELIFDEF)
        questions = _QUESTION.findall(text)
        self.questions.update(f"{name}({what})" for name, what in questions)
        self._tested |= tested
        self._valued |= valued
        self._named.update(_RESERVED.findall(text))

    def _define(self, rest: str) -> None:
        match = _DEFINITION.match(rest)
        if match is None:
            return
        name, parameters, body = match.groups()
        words = set(WORD.findall(body)) - set(WORD.findall(parameters or ""))
        self._made.add(name)
        self._bodies.setdefault(name, set()).update(words)
        self._stringizes |= bool(_MAKES_STRINGS.search(body))
        if "defined" in words:
            self._tested |= words - _KEYWORDS
            if "##" in body:
                self._unclear = "a condition asks for a name that a macro puts together"

    def asked(self) -> Asked:
        """Return all names and questions."""
        inside = {question.partition("(")[2][:-1] for question in self.questions}
        tested, reached = set(self._tested), set(self._valued)
        new = list(reached)
        while new:
            more = self._bodies.get(new.pop(), set()) - reached
            reached |= more
            tested |= more - _KEYWORDS
            new += more
        settled = self._given | inside | {"defined", "__LINE__"}
        named = self._named - self._made - tested - _KEYWORDS - self._given - inside
        tested = {name for name in tested - settled if not _OURS.match(name)}
        return Asked(
            frozenset(tested), frozenset(named), frozenset(self.questions), self._unclear,
            self._stringizes,
        )  # fmt: skip
