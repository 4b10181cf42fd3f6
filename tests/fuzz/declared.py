"""Random `reads=` and `writes=` of a launch, and declarations of kernels, that say enough, so that
the outcome stays certain."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import acs_cl as acs

Enough = Mapping[str, Mapping[str, Sequence[str]]]
"""Declarations to choose from, by kernel and parameter."""


@contextmanager
def declaring(rng: random.Random, program: acs.Program, enough: Enough) -> Iterator[None]:
    """Have most of these kernels declare what they touch, some of them not all of it."""
    kernels = [getattr(program, name) for name in enough]
    for kernel, parameters in zip(kernels, enough.values(), strict=True):
        said = {name: rng.choice(texts) for name, texts in parameters.items() if rng.random() < 0.8}
        if said and rng.random() < 0.8:
            kernel.access(**said)
    try:
        yield
    finally:
        for kernel in kernels:
            kernel.declarations = None
            kernel.infer_ranges = None  # forgets its plan


def declared(
    rng: random.Random,
    reads: Sequence[acs.Array],
    writes: Sequence[acs.Array],
    more: Sequence[acs.Array],
) -> dict[str, Any]:
    """Return keywords for a launch that reads and writes these arguments, pieces of one array.
    `more`: views that it may name besides."""
    found: dict[str, Any] = {}
    kind = rng.randrange(6)
    if kind == 0:  # nothing is named
        found = {rng.choice(("reads", "writes")): rng.choice(([], ()))}
    elif kind == 1:  # one argument that shares no byte with another
        one = rng.choice([*reads, *writes])
        if all(one is other or _are_apart(one, other) for other in (*reads, *writes)):
            found["reads"] = [one] if any(one is other for other in reads) else None
            found["writes"] = one if any(one is other for other in writes) else None
    else:
        read = [*reads, *([rng.choice(more)] if kind == 2 else [])]
        written = [*writes, *([rng.choice(more)] if kind == 3 else [])]
        for name, arrays in (("reads", read), ("writes", written)):
            if arrays:
                found[name] = arrays[0] if len(arrays) == 1 else rng.choice((list, tuple))(arrays)
    return found


def shifted(rng: random.Random, name: str, size: int) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Return the global size of a launch of one axis, and its offset: sometimes its second half."""
    if name == "lend" or rng.random() < 0.8:
        return (size,), {}
    return (size // 2,), {"offset": rng.choice(((size // 2,), [size // 2]))}


def _are_apart(one: acs.Array, other: acs.Array) -> bool:
    return one.offset + one.nbytes <= other.offset or other.offset + other.nbytes <= one.offset
