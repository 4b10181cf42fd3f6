"""Run rigid bodies with queues and events by hand.

Input: `expert.Queues`. Output: a run with the results of `rigid_program.RigidByHost`.

Invariant: impulses of a group of parts are gathered after all launches that touch the group. It
moves after that, and the next launch that touches it comes after its move. A sub-step has no other
order: a launch that reads a motion, a pose or a flag also writes a slot that is gathered later.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acs_cl.benchmarks.workloads.expert import LANES, Queues, Token
from acs_cl.benchmarks.workloads.rigid_program import Call, RigidByHost, RigidSize


class RigidByHand(RigidByHost):
    """The same with events. Each group of parts has a lane, for its motion and the joints that end
    there; actuators and contacts share the others. It reads flags once in a frame, since the
    launch that begins episodes again does nothing where none has ended."""

    def __init__(self, queues: Queues, size: RigidSize, seed: int) -> None:
        super().__init__(queues, size, seed)
        self.queues = queues
        self.live = np.zeros(self.flags.shape, np.uint32)
        self.lane = {name: lane for lane, name in enumerate(self.layout.sections)}
        joints = 2 * len(self.layout.pulls)
        rest = LANES - len(self.lane)
        self.lanes = [
            self.lane[call.touches[1]]
            if at < joints and at % 2 == 0
            else len(self.lane) + at % rest
            for at, call in enumerate(self.forces)
        ]

    def step(self) -> None:
        """Run all frames of one step."""
        moved: dict[str, Token] = {}
        for _ in range(self.size.frames):
            live = self._looked(list(moved.values()))
            moved.clear()  # the host has waited for all of it
            forces = [
                (call, lane)
                for call, lane in zip(self.forces, self.lanes, strict=True)
                if call.flag < 0 or live[call.flag]
            ]
            for _ in range(self.size.substeps):
                self._substep(forces, moved)

    def _looked(self, before: Sequence[Token]) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        """Launch a frame up to its broad phase, and read the findings of that."""
        act, judge = self.opening
        token = self._go(act, before, 0)
        token = self._go(judge, [token], 0)
        token = self._go(self.again, [token], 0)
        near = [self._go(call, [token], lane) for lane, call in enumerate(self.broad)]
        self.queues.wait(self.queues.read(self.flags, self.live, near))
        return self.live[:, 0]

    def _substep(self, forces: Sequence[tuple[Call, int]], moved: dict[str, Token]) -> None:
        pushed: dict[str, list[Token]] = {name: [] for name in self.lane}
        for call, lane in forces:
            before = [moved[name] for name in call.touches if name in moved]
            token = self._go(call, before, lane)
            for name in call.touches:
                pushed[name].append(token)
        parts = len(self.lane)
        for gather, move in zip(self.motion[:parts], self.motion[parts:], strict=True):
            (name,) = gather.touches
            token = self._go(gather, pushed[name], self.lane[name])
            moved[name] = self._go(move, [token], self.lane[name])

    def _go(self, call: Call, after: Sequence[Token], lane: int) -> Token:
        return self.queues.go(call.ready, after, lane)
