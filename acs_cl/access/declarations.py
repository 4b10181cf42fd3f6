"""Declarations of a kernel: which bytes every launch of it touches.

Input: declarations by parameter, or a function, and the arguments of a launch. Output: the
`Access`, in which declarations replace what was inferred for these parameters, and what launch
plans have of it. Declarations are checked when they are made, not when first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..errors import UsageError, describe
from ..memory.array import Array
from ..ranges import Rectangle
from ..records import Access, Span
from . import arguments
from .called import Arguments, Called
from .declared import Declaration, parse
from .signature import Parameter

Declares = Callable[..., tuple[object, object]]
"""A function of the program that returns what a launch reads and writes."""


class Planned(NamedTuple):
    """What a launch plan has of declarations."""

    modes: Sequence[str]
    """What every launch does to each parameter. With 'o' it overwrites all of it."""
    numbers: Sequence[int]
    """The parameters that ranges depend on."""
    ranged: Sequence[int]
    """The parameters that have ranges."""


class Part(NamedTuple):
    """What ranges are for an argument of this length, in bytes."""

    length: int
    reads: Sequence[Rectangle]
    writes: Sequence[Rectangle]
    is_overwritten: bool
    """Whether all that is written is surely overwritten."""


class Told(NamedTuple):
    """What ranges are for a launch, and for others with the same sizes, numbers and lengths."""

    numbers: Sequence[int]
    """By `Planned.numbers`."""
    parts: Sequence[Part]
    """By `Planned.ranged`."""


class _Touched(NamedTuple):
    """What a launch does to one argument."""

    reads: Sequence[Span]
    writes: Sequence[Span]
    sure: Sequence[Span]
    """Those of `writes` that are no hulls."""
    part: Part | None = None
    """The same for the plan. None: it is not of ranges, or not the same for all."""


class Declarations:
    """Holds the declarations of `Kernel.access`."""

    def __init__(self, kernel: Called, function: Declares | None, modes: Mapping[str, str]) -> None:
        if (function is None) == (not modes):
            raise UsageError(
                f"kernel {kernel.name!r}: access() takes declarations by parameter, or one function"
            )
        if function is not None and not callable(function):
            raise UsageError(
                f"kernel {kernel.name!r}: access() got {describe(function)}, expected "
                "declarations by parameter, such as x='r', or one function"
            )
        self._kernel = kernel
        self._function = function
        parameters = {parameter.name: parameter for parameter in kernel.signature.parameters}
        self._declared: dict[str, Declaration] = {}
        for name, text in modes.items():
            if name not in parameters:
                raise UsageError(
                    f"kernel {kernel.name!r} has no parameter {name!r}; it has: "
                    f"{', '.join(parameters)}"
                )
            self._declared[name] = self._parse(parameters[name], text)
        self.planned = self._plan()
        """What launch plans have of it. None: a function declares."""

    @property
    def told(self) -> Mapping[str, str] | None:
        """Return the declarations by parameter. None: a function declares."""
        if self._function is not None:
            return None
        return {name: one.text for name, one in self._declared.items()}

    def _plan(self) -> Planned | None:
        if self._function is not None:
            return None
        parameters = self._kernel.signature.parameters
        names = self._names()
        ranged = {name for name, one in self._declared.items() if not _is_whole(one)}
        return Planned(
            [self._mode(parameter) for parameter in parameters],
            [index for index, one in enumerate(parameters) if one.name in names],
            [index for index, one in enumerate(parameters) if one.name in ranged],
        )

    def _names(self) -> set[str]:
        """Return the parameters that ranges depend on."""
        return {name for one in self._declared.values() for name in one.names}

    def _mode(self, parameter: Parameter) -> str:
        declaration = self._declared.get(parameter.name)
        if declaration is None:
            return parameter.mode
        overwrites = "r" not in declaration.mode and _is_whole(declaration)
        return declaration.mode + "o" * overwrites

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
        return declaration

    def apply(
        self,
        inferred: Access,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        offset: tuple[int, ...] | None,
        args: Arguments,
    ) -> tuple[Access, Told | None]:
        """Return the access of one launch, and what its plan may keep of that."""
        if self._function is not None:
            return self._call(inferred, global_size, local_size, args), None
        engine = self._kernel.engine
        parameters = self._kernel.signature.parameters
        scalars = {
            parameter.name: int(value)
            for parameter, value in zip(parameters, args, strict=True)
            if not parameter.is_pointer and hasattr(value, "__index__")
        }
        reads: list[Span] = []
        writes: list[Span] = []
        sure: list[Span] = []
        parts: list[Part] = []
        ranged = 0
        bases: set[int] = set()
        for parameter, value in zip(parameters, args, strict=True):
            found = arguments.resolve(engine, value)
            if found is None:
                continue
            bases.update(span.base for span in found.spans)
            declaration = self._declared.get(parameter.name)
            if declaration is None:
                mode = parameter.mode
                if not mode and not parameter.is_pointer:
                    mode = "rw"
                reads += found.spans if "r" in mode else ()
                writes += found.spans if "w" in mode else ()
                continue
            exact = value.overwrites() if isinstance(value, Array) else found.spans
            own = self._spans(
                declaration, parameter, found.spans, exact, global_size, offset, scalars
            )
            reads += own.reads
            writes += own.writes
            sure += [span for span in own.sure if span not in own.reads]
            ranged += not _is_whole(declaration)
            if own.part is not None:
                parts.append(own.part)
        # memory that is behind no argument: any memory, variables of the program
        reads += (span for span in inferred.reads if span.base not in bases)
        writes += (span for span in inferred.writes if span.base not in bases)
        access = Access(tuple(reads), tuple(writes), tuple(sure))
        if not ranged or len(parts) < ranged:
            return access, None
        names = self._names()
        return access, Told([scalars[p.name] for p in parameters if p.name in names], parts)

    def _spans(
        self,
        declaration: Declaration,
        parameter: Parameter,
        spans: tuple[Span, ...],
        exact: Sequence[Span],
        global_size: tuple[int, ...],
        offset: tuple[int, ...] | None,
        scalars: Mapping[str, int],
    ) -> _Touched:
        """Return what a launch does to an argument. `spans`: of the argument. `exact`: those of
        them that are no hulls."""
        if _is_whole(declaration):
            mode = declaration.mode
            return _Touched(
                spans if "r" in mode else (),
                spans if "w" in mode else (),
                exact if "w" in mode else (),
            )
        if not spans:
            return _Touched((), (), ())
        start = min(span.start for span in spans)
        end = max(span.end for span in spans)
        where = f"{self._kernel.label()}, parameter {parameter.name!r}"
        if not parameter.element_bytes:
            raise UsageError(
                f"{where}: the size of {parameter.element!r} is unknown; pass reads=/writes= views"
            )
        try:
            ranges = declaration.ranges(
                global_size, offset, scalars, parameter.element_bytes, end - start
            )
        except KeyError as error:
            raise UsageError(f"{where}: argument {error} is not an integer") from None
        except ValueError as error:
            raise UsageError(f"{where}: {error}") from None
        reads, writes, sure = (
            [
                Span(spans[0].base, start + low, pitch, rows, width)
                for low, pitch, rows, width in some
            ]
            for some in ranges
        )
        certain = [span in sure and span not in reads for span in writes]
        if len(spans) > 1 or (any(certain) and not all(certain)):
            return _Touched(reads, writes, sure)
        return _Touched(reads, writes, sure, Part(end - start, *ranges[:2], all(certain)))

    def _call(
        self,
        inferred: Access,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        args: Arguments,
    ) -> Access:
        assert self._function is not None
        where = f"{self._kernel.label()}: the access function"
        try:
            reads, writes = self._function(global_size, local_size, *args)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{where} failed or gave no (reads, writes): {error}") from error
        engine = self._kernel.engine
        _, read_spans, _ = arguments.declared(engine, reads, "reads", where)
        _, write_spans, exact = arguments.declared(engine, writes, "writes", where)
        views = arguments.views_of(engine, args)
        return arguments.replace(inferred, read_spans, write_spans, exact, views)


def _is_whole(declaration: Declaration) -> bool:
    """Tell whether it has modes only, which mean all of the argument."""
    return all(clause.low is None for clause in declaration.clauses)
