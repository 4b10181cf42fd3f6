"""Declarations of a kernel: which bytes every launch of it touches.

Input: declarations by parameter, or a function. Output: a binder for launches whose parameters have
the declared modes, and ranges for it; or what the function says. Declarations are checked when they
are made, not when first used.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence

from ..errors import UsageError, describe
from ..ranges import Rectangle
from ..records import Sizes, Span
from .binder import binder, parameter_of
from .called import Arguments, Called
from .declared import Declaration, parse
from .signature import Parameter

Declares = Callable[..., tuple[object, object]]
"""A function of the program that returns what a launch reads and writes."""


class Declarations:
    """Holds the declarations of `Kernel.access`."""

    def __init__(
        self,
        kernel: Called,
        function: Declares | None,
        modes: Mapping[str, str],
        more: Sequence[Span],
    ) -> None:
        """Check them. `more`: what the kernel reads and writes besides its arguments."""
        if (function is None) == (not modes):
            raise UsageError(
                f"kernel {kernel.name!r}: access() takes declarations by parameter, or one function"
            )
        if function is not None and not callable(function):
            raise UsageError(
                f"kernel {kernel.name!r}: access() got {describe(function)}, expected "
                "declarations by parameter, such as x='r', or one function"
            )
        self._kernel = weakref.proxy(kernel)  # which has these
        self.function = function
        signature = kernel.signature
        parameters = {parameter.name: parameter for parameter in signature.parameters}
        self._declared: dict[str, Declaration] = {}
        for name, text in modes.items():
            if name not in parameters:
                raise UsageError(
                    f"kernel {kernel.name!r} has no parameter {name!r}; it has: "
                    f"{', '.join(parameters)}"
                )
            self._declared[name] = self._parse(parameters[name], text)
        self._told = [
            index
            for index, one in enumerate(signature.parameters)
            if parameter_of(one)[0] == "P" and not _is_whole(self._declared.get(one.name))
        ]
        names = {name for one in self._declared.values() for name in one.names}
        needed = [
            index
            for index, one in enumerate(signature.parameters)
            if index in self._told or one.name in names
        ]
        own = tuple(map(self._said_of, signature.parameters))
        self.signature = signature._replace(parameters=own, outline=None)
        """The parameters with their declared modes. With 'o' launches overwrite all of one."""
        self.binder = binder(self.signature, True, more, needed)

    @property
    def told(self) -> Mapping[str, str] | None:
        """Return the declarations by parameter. None: a function declares."""
        if self.function is not None:
            return None
        return {name: one.text for name, one in self._declared.items()}

    def _said_of(self, parameter: Parameter) -> Parameter:
        declaration = self._declared.get(parameter.name)
        if declaration is None:
            return parameter
        overwrites = "r" not in declaration.mode and _is_whole(declaration)
        return parameter._replace(mode=declaration.mode + "o" * overwrites)

    def _parse(self, parameter: Parameter, text: str) -> Declaration:
        where = f"kernel {self._kernel.name!r}, parameter {parameter.name!r}"
        if not isinstance(text, str):
            said = describe(text)
            raise UsageError(f"{where}: got {said}, expected text such as 'r' or 'w[gid]'")
        if not parameter.is_pointer and parameter.space != "image":
            raise UsageError(f"{where}: {parameter.type_name} is passed by value")
        try:
            declaration = parse(text, self._kernel.signature.parameters)
        except ValueError as error:
            raise UsageError(f"{where}: {error}") from None
        if "w" in declaration.mode and parameter.const:
            raise UsageError(
                f"{where}: {text!r} declares a write, but the kernel takes it as const"
            )
        if not parameter.element_bytes and not _is_whole(declaration):
            kind = parameter.element or parameter.type_name
            raise UsageError(f"{where}: the size of {kind!r} is unknown; pass reads=/writes= views")
        return declaration

    def ranges(
        self, global_size: Sizes, offset: Sizes, numbers: Mapping[int, int]
    ) -> dict[int, tuple[list[Rectangle], list[Rectangle], list[Rectangle]]]:
        """Evaluate the ranges for a launch, as `binder.Ranges`."""
        parameters = self.signature.parameters
        scalars = {parameters[index].name: number for index, number in numbers.items()}
        found = {}
        for index in self._told:
            parameter = parameters[index]
            if index not in numbers:
                continue  # it has no memory
            try:
                reads, writes, sure = self._declared[parameter.name].ranges(
                    global_size, offset, scalars, parameter.element_bytes, numbers[index]
                )
            except ValueError as error:
                where = f"{self._kernel.label()}, parameter {parameter.name!r}"
                raise UsageError(f"{where}: {error}") from None
            found[index] = reads, writes, [one for one in sure if one not in reads]
        return found

    def said(
        self,
        global_size: Sizes,
        local_size: Sizes | None,
        args: Arguments,
        where: str,
    ) -> tuple[object, object]:
        """Return what the program's function says that a launch reads and writes."""
        assert self.function is not None
        try:
            reads, writes = self.function(global_size, local_size, *args)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{where} failed or gave no (reads, writes): {error}") from error
        return reads, writes


def _is_whole(declaration: Declaration | None) -> bool:
    """Tell whether it has modes only, or is none, which mean all of the argument."""
    return declaration is None or all(clause.low is None for clause in declaration.clauses)
