"""What the library uses of libclang's cursors, whose bindings have no types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol


class File(Protocol):
    """A file that something stands in."""

    name: str


class Location(Protocol):
    """A place in a file; None where it is in none."""

    file: File | None
    line: int
    offset: int


class Extent(Protocol):
    """Where a cursor begins and ends."""

    start: Location
    end: Location


class Type(Protocol):
    """The type of an expression or a variable. `_kind_id`: as libclang numbers kinds of types."""

    _kind_id: int
    spelling: str
    element_count: int

    @property
    def element_type(self) -> Type: ...
    def get_canonical(self) -> Type: ...
    def get_pointee(self) -> Type: ...
    def get_array_element_type(self) -> Type: ...
    def get_address_space(self) -> int: ...
    def get_size(self) -> int: ...
    def get_align(self) -> int: ...
    def get_fields(self) -> Iterable[Cursor]: ...
    def is_const_qualified(self) -> bool: ...


class Cursor(Protocol):
    """A node of the tree. `_kind_id`: as libclang numbers kinds of cursors; `_tu`: its tree."""

    _kind_id: int
    _tu: object
    spelling: str
    type: Type
    location: Location
    extent: Extent
    enum_value: int
    data: Sequence[int | None]

    @property
    def canonical(self) -> Cursor: ...
    @property
    def referenced(self) -> Cursor | None: ...
    def get_children(self) -> Iterable[Cursor]: ...
    def get_definition(self) -> Cursor | None: ...
    def is_definition(self) -> bool: ...


class Diagnostic(Protocol):
    """Something that the parser says of a source."""

    severity: int
    spelling: str
    location: Location


class Inclusion(Protocol):
    """A file that a source includes."""

    include: File


class Tree(Protocol):
    """A whole source."""

    cursor: Cursor
    diagnostics: Iterable[Diagnostic]

    def get_includes(self) -> Iterable[Inclusion]: ...


class Index(Protocol):
    """What parses sources."""

    def parse(
        self,
        path: str,
        args: Sequence[str],
        unsaved_files: Sequence[tuple[str, str]],
        options: int = ...,
    ) -> Tree: ...


Collect = Callable[[Cursor], list[Cursor]]
"""Lists the children of a cursor."""
