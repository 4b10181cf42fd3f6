"""Types for libclang's cursors, whose bindings have none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...records import Protocol


class File(Protocol):
    """A file that contains a node."""

    name: str


class Location(Protocol):
    """A place in a file. None: it is in no file."""

    file: File | None
    line: int
    offset: int


class Extent(Protocol):
    """Beginning and end of a cursor."""

    start: Location
    end: Location


class Type(Protocol):
    """The type of an expression or a variable. `_kind_id`: libclang's number for its kind."""

    _kind_id: int
    spelling: str
    element_count: int

    @property
    def element_type(self) -> Type: ...
    def get_canonical(self) -> Type: ...
    def get_pointee(self) -> Type: ...
    def get_declaration(self) -> Cursor: ...
    def get_array_element_type(self) -> Type: ...
    def get_address_space(self) -> int: ...
    def get_size(self) -> int: ...
    def get_align(self) -> int: ...
    def get_fields(self) -> Iterable[Cursor]: ...
    def is_const_qualified(self) -> bool: ...


class Cursor(Protocol):
    """A node of the tree. `_kind_id`: libclang's number for its kind; `_tu`: its tree."""

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
    def semantic_parent(self) -> Cursor | None: ...
    @property
    def referenced(self) -> Cursor | None: ...
    def get_children(self) -> Iterable[Cursor]: ...
    def get_definition(self) -> Cursor | None: ...
    def get_field_offsetof(self) -> int: ...
    def is_definition(self) -> bool: ...


class Diagnostic(Protocol):
    """A message of the parser about a source."""

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
    """Parses sources."""

    def parse(
        self,
        path: str,
        args: Sequence[str],
        unsaved_files: Sequence[tuple[str, str]],
        options: int = ...,
    ) -> Tree: ...


Collect = Callable[[Cursor], list[Cursor]]
"""Lists the children of a cursor."""
TypeOf = Callable[[Cursor], int | None]
"""Tells the identity of a cursor's type in its tree. None: it has none."""
