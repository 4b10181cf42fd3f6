"""Verdicts: what was proven of a graph, for users and for files.

Input: the proofs of its segments. Output: a `Verified`, or an `InternalError`, because words that
do not keep program order are a fault of this library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import InternalError
from ..records import NamedTuple
from ..scheduler.proof import MOST_TOLD, Proof

NONE = "no segments: each replay launches one by one, and the runtime orders these by their bytes"


class Verified(NamedTuple):
    """What was proven of a graph. `proofs`: of each segment."""

    launches: int
    proofs: tuple[Proof, ...]

    def __str__(self) -> str:
        text = f"graph of {self.launches:,} launches: "
        if not self.proofs:
            return text + NONE
        text += "; ".join(f"segment {n}: {one}" for n, one in enumerate(self.proofs, 1))
        if (alone := self.launches - sum(one.tasks for one in self.proofs)) > 0:
            text += f"; by themselves: {alone:,}, which the runtime orders by their bytes"
        return text


def judged(
    proofs: Sequence[tuple[Callable[[int], str], Proof]], launches: int, keeps: bool = True
) -> Verified:
    """Judge a graph of `launches` launches. `proofs`: each with a function that names a task.
    `keeps`: whether they are sent in an order that keeps program order."""
    faults = [] if keeps else ["they are sent in an order that is not the program's"]
    for number, (told, proof) in enumerate(proofs, 1):
        for fault in proof.faults[:MOST_TOLD]:
            who = "; ".join(f"task {task} is {told(task)}" for task in fault.tasks)
            faults.append(f"segment {number}: {fault.text}" + (f"; {who}" if who else ""))
    if faults:
        raise InternalError(
            f"the words of a graph of {launches:,} launches are not proven:\n  "
            + "\n  ".join(faults)
            + "\ndo not replay it; please report this"
        )
    return Verified(launches, tuple(proof for _, proof in proofs))
