"""Spawn: what a program asks for items that its kernels spawn. Pure.

Input: a name, or a `Spawn`. Output: a `Spawn` whose fields are right, or an error.
"""

from __future__ import annotations

from ..errors import UsageError, refuse_unknown, whole
from ..records import NamedTuple

CONTROLLERS = {"never": 0, "always": 1, "hungry": 2, "ccqs": 3}
"""The numbers of controllers in the scheduler, by the names that a program gives."""

MOST_THRESHOLD = 1 << 20
MOST_TILES = 1 << 30


class Spawn(NamedTuple):
    """Says what happens to items that a kernel spawns, for a runtime or one launch.

    - `controller`: decides whether items become a task of their own. 'hungry': if a group has
      nothing to do. 'always', 'never'. 'ccqs': if that seems quicker, by the times of others.
    - `threshold`: a call with fewer items runs them at once. 'auto': the scheduler learns it.
    - `at_most`: tiles of a launch and its children that may wait or run at one time.

    >>> import acs_cl as acs
    >>> SOURCE = '''
    ... #include <acs_spawn.h>
    ... void put(uint item, global int *x, int by) { x[item] += by; }
    ... kernel void give(global int *x) { ACS_SPAWN(put, 3u, x, 7); }
    ... '''
    >>> with acs.Runtime() as rt:
    ...     prog, x = rt.build(SOURCE), rt.zeros(3, "i4")
    ...     handle = prog.give((1,), None, x, spawn=acs.Spawn("always", at_most=64))
    ...     print(x.get())
    [7 7 7]
    """

    controller: str = "hungry"
    threshold: int | str = "auto"
    at_most: int = 1 << 16

    @property
    def word(self) -> int:
        """Return the word for a record. 0: nothing is spawned."""
        controller = CONTROLLERS[self.controller]
        least = 0 if self.threshold == "auto" else int(self.threshold)
        return least << 8 | (self.at_most.bit_length() - 1) << 3 | controller if controller else 0


def read(said: object) -> Spawn:
    """Read the three fields from a file."""
    return asked(Spawn(*said) if isinstance(said, list) and len(said) == 3 else said)


def asked(value: object) -> Spawn:
    """Check what a program asked for.

    >>> asked("always"), asked(Spawn(threshold=8)).threshold
    (Spawn(controller='always', threshold='auto', at_most=65536), 8)
    """
    controller = value.controller if isinstance(value, Spawn) else value
    refuse_unknown("spawn", controller, CONTROLLERS)
    found = value if isinstance(value, Spawn) else Spawn(str(controller))
    if found.threshold != "auto" and not _is_number(found.threshold, MOST_THRESHOLD):
        raise UsageError(
            f"spawn={value!r}: expected as threshold 'auto' or 1 to {MOST_THRESHOLD:,} items"
        )
    if not _is_number(found.at_most, MOST_TILES):
        raise UsageError(f"spawn={value!r}: expected 1 to {MOST_TILES:,} tiles at most")
    return found


def _is_number(value: object, most: int) -> bool:
    number = whole(value)
    return number is not None and 1 <= number <= most
