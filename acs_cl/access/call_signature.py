"""What a call of a kernel takes, as Python's `inspect` tells it: shells and editors show that.

Input: a kernel. Output: an `inspect.Signature` with the parameters of the source, and the keywords
of a launch.
"""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING, Protocol

from .hints import KEYWORDS

if TYPE_CHECKING:
    from inspect import Signature as Told

    from .signature import Signature

SIZES = "global_size", "local_size"


class Called(Protocol):
    """A kernel, as far as its parameters go."""

    @property
    def signature(self) -> Signature:
        """Return the parameters of the kernel."""


class CallSignature:
    """Is `__signature__` of a class of kernels. Each kernel has its own; the class has none."""

    def __get__(self, kernel: Called | None, kind: type) -> Told:
        if kernel is None:
            raise AttributeError("__signature__")
        return told(kernel.signature)


def told(signature: Signature) -> Told:
    """Return what a call takes. Names that Python cannot have there get a `_`."""
    import inspect  # only for shells

    Parameter = inspect.Parameter  # noqa: N806  a class
    taken = {*SIZES, *KEYWORDS}
    parameters = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in SIZES]
    for index, one in enumerate(signature.parameters):
        name = one.name if one.name.isidentifier() else f"argument{index}"
        while name in taken or keyword.iskeyword(name):
            name += "_"
        taken.add(name)
        parameters.append(
            Parameter(name, Parameter.POSITIONAL_ONLY, annotation=one.type_name or Parameter.empty)
        )
    parameters += [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in KEYWORDS]
    return inspect.Signature(parameters)
