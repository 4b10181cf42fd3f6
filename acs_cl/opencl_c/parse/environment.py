"""Environment: the macros of the device's compiler, with which a source is read.

Input: a device, build options, and step by step the names that a source leaves to its compiler.
Output: definitions for these names, as lines to put before the source, and the language standard.
Invariant: a name of unknown value becomes an identifier without a declaration. So the source is
refused exactly where it uses the name. All other values are the compiler's. Without a device, and
if a driver does not tell, only the promises of OpenCL count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyopencl as cl

from acs_cl.devices.facts import BuildOptions, CannotParse, facts_of, split_options
from acs_cl.opencl_c.parse import macros, prelude
from acs_cl.opencl_c.parse.names import ELIFDEF, WORD, Asked

_VERSION = "__OPENCL_C_VERSION__"
_DIFFERING = frozenset({"__PRETTY_FUNCTION__"})
"""Names that are no macros, and that each compiler writes in its own way."""
_ANSWER, _OF = "acs_answer_", "_acs_of_"


class Environment:
    """The answers of a device's compiler for one source."""

    def __init__(self, device: cl.Device | None, options: BuildOptions) -> None:
        self.facts = facts_of(device)
        self.macros: dict[str, macros.Answer] = {}
        self._device = device
        self._words = split_options(options)
        self._constants: dict[str, str] = {}
        """Constants of OpenCL that are macros here and not there, with their values there."""
        self.stringizes = False

    def ask(self, asked: Asked) -> bool:
        """Ask about names that a text leaves to its compiler; return whether anything is new."""
        if asked.unclear:
            raise CannotParse(asked.unclear)
        self.stringizes |= asked.stringizes
        wanted = asked.tested | asked.named | asked.questions
        new = frozenset(n for n in wanted - set(self.macros) if not n.startswith(macros.UNKNOWN))
        if new:
            self._answer(new | {_VERSION} - set(self.macros), asked.tested | asked.questions)
        if ELIFDEF in asked.questions and self.macros[ELIFDEF] is None:
            raise CannotParse("the compiler may not know #elifdef and #elifndef")
        # A test shows that they are no macros, so they cannot be macros here.
        tested = asked.tested & self._constants.keys()
        for name in tested:
            self.macros[name] = None
            del self._constants[name]
        return bool(new or tested)

    def _answer(self, new: frozenset[str], tested: frozenset[str]) -> None:
        differing = new & _DIFFERING
        self.macros.update({name: macros.UNKNOWN + name for name in differing})
        new -= differing
        if self._device is not None:
            told = macros.answers(self._device, self._words, new)
            if told is not None:
                for name in sorted(new - told.keys()):
                    if name in tested:
                        raise depends_on(name)
                    told[name] = macros.UNKNOWN + name
                self._constants |= self._values(
                    name for name, text in told.items() if text is None and name[:4] == "CLK_"
                )
                self.macros.update({**told, **self._constants})
                return
        for name in sorted(new):
            known, text = prelude.promised(self.facts, self._words, name)
            if not known and name in tested:
                raise depends_on(name)
            # Each driver has constants of its own, and a string shows whether a name is a macro.
            is_unknown = not known and (name[:4] == "CLK_" or self.stringizes)
            self.macros[name] = macros.UNKNOWN + name if is_unknown else text

    def _values(self, constants: Iterable[str]) -> dict[str, str]:
        """Return the values of constants that are no macros. Those of NVIDIA are not those of the
        header here."""
        questions = {name: macros.VALUE + name for name in constants}
        assert self._device is not None
        told = macros.answers(self._device, self._words, questions.values()) or {}
        return {
            name: told.get(question) or macros.UNKNOWN + name
            for name, question in questions.items()
        }

    def meet(self, names: Iterable[str]) -> bool:
        """Ask about names without a declaration that the parser met; return whether anything is
        new. Raises `CannotParse` if a name's value is not known, or if only the compiler has the
        text of a macro."""
        found = set(names)
        questions = {name for name in found if name.startswith(_ANSWER)}
        for name in sorted(questions):
            if name.endswith(_OF):  # not about a name
                raise depends_on(name[len(_ANSWER) : -len(_OF)])
        if self.ask(
            Asked(tested=frozenset(found - questions), questions=frozenset(map(_asks, questions)))
        ):
            return True
        for name in sorted(found):
            if name.startswith(macros.UNKNOWN):
                raise depends_on(name.removeprefix(macros.UNKNOWN))
            if self.macros.get(name) == name or name in questions:
                raise depends_on(_asks(name))
        return False

    def give_back(self, undeclared: Iterable[str]) -> bool:
        """Let macros stand for themselves if their text has an unknown name; return whether there
        are any."""
        strange = set(undeclared)
        found = [
            name for name, text in self.macros.items()
            if text and text != name and strange.intersection(WORD.findall(text))
            and not text.startswith(macros.UNKNOWN)
        ]  # fmt: skip
        self.macros.update({name: name for name in found})
        return bool(found)

    def standards(self, given: list[str]) -> list[str]:
        """Return the standards to try, as options."""
        if given:
            return given[-1:]
        version = self.macros.get(_VERSION) or ""
        told = [f"-cl-std=CL{version[0]}.{version[1]}"] if re.match(r"\d\d0$", version) else []
        # Without the option the language is OpenCL C 1.2, but some drivers use their newest.
        return list(dict.fromkeys([*told, "-cl-std=CL1.2", "-cl-std=CL3.0"]))

    def definitions(self, there: Iterable[str] = ()) -> list[str]:
        """Return lines that define the compiler's macros. `there`: macros that the reader has
        already."""
        lines = []
        known = set(there)
        for name, text in self.macros.items():
            if name == "__LINE__" == text:
                continue
            if "(" in name:
                question, _, what = name[:-1].partition("(")
                lines.append(f"#define {_ANSWER}{question}{_OF}{what}() {text}")
            elif text is None:
                lines.append(f"#undef {name}")
            elif name.startswith("__has_") and text == name:
                lines.append(f"#undef {name}\n#define {name}(what) {_ANSWER}{name}{_OF}##what()")
            elif name.isidentifier() and (text != name or name not in known):
                lines.append(f"#undef {name}\n#define {name} {text}")
        return lines


def depends_on(name: str) -> CannotParse:
    """Return the refusal of a source because of a macro."""
    return CannotParse(f"the source depends on the compiler's macro {name}")


def _asks(name: str) -> str:
    """Return the question that a name was made for, or the name itself."""
    question, separator, what = name.removeprefix(_ANSWER).partition(_OF)
    return f"{question}({what})" if separator else name
