"""Signatures: a kernel's parameters, and what it may do to the memory behind them.

These are only the records. `inference` makes them, and is loaded when the first kernel is launched.
"""

from __future__ import annotations

from acs_cl.opencl_c.outlines import Outline

from ..records import NamedTuple

DEPENDENCIES = ("exact", "with-const", "no-const")
"""What a launch touches of an argument. 'exact': what its kernel reads and writes there.
'with-const': all of it, and a const one is only read. 'no-const': all of it, and any may be
written. The last two are GrCUDA's."""


class Parameter(NamedTuple):
    """One parameter of a kernel."""

    name: str
    type_name: str  # as written, e.g. 'float*', 'int', 'struct foo'
    space: str  # 'global' 'constant' 'local' 'private' 'image' 'sampler' 'pipe', '' if unknown
    is_pointer: bool
    element: str  # type that is pointed to, '' if not a pointer
    element_bytes: int  # 0 if unknown
    size_bytes: int  # by value, 0 if unknown
    const: bool  # what is pointed to is const, or constant
    mode: str  # '' 'r' 'w' 'rw'
    why: str


class Signature(NamedTuple):
    """The parameters of a kernel and what it touches besides them."""

    kernel: str
    parameters: tuple[Parameter, ...]
    anywhere: str  # '' or the reason why memory may be touched that no argument names
    program_globals: bool
    has_local_variables: bool
    group_size: tuple[int, ...] | None
    origin: str  # 'arginfo' | 'parsed' | 'arginfo+parsed' | 'nothing known: <reason>'
    outline: Outline | None = None  # decides where it touches its arguments
    unclear: str = ""  # why there is no outline
    unsteady: str = ""  # '' or why launches may end otherwise from the same memory


def by_arguments(signature: Signature, dependencies: str) -> Signature:
    """Return the signature for a runtime that knows kernels only by their arguments."""
    if dependencies == "exact":
        return signature
    why = f"dependencies={dependencies!r}"

    def seen(one: Parameter) -> Parameter:
        if not one.is_pointer or one.space not in ("global", "constant"):
            return one
        reads = dependencies == "with-const" and one.const
        return one._replace(mode="r" if reads else "rw", why=why)

    return signature._replace(
        parameters=tuple(map(seen, signature.parameters)), outline=None, unclear=why
    )
