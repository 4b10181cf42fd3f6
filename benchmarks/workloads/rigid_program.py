"""Launch rigid bodies.

Input: a platform, a body, a number of environments, a seed. Output: runs. A frame is an action of a
policy (a wave for each actuator), a check which environments have fallen and begin again, a broad
phase, and some sub-steps. In a sub-step each group of like joints, actuators and contacts is a
launch. Then each group of like parts gathers its impulses and moves.

The state decides what is launched. A group of contacts runs only in frames in which the broad phase
has found one of its pairs near in some environment. Episodes begin again only where one has ended.
`Rigid` leaves both to the device (`when=`), so that every step has the same launches. `RigidByHost`
reads the flags and launches only what has to run.

Invariant: a launch that is left out would have added impulses of zero, unless something moved
faster than the broad phase expected. In that case all versions leave it out, because they decide
alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from acs_cl.benchmarks.workloads import rigid_layout as layouts
from acs_cl.benchmarks.workloads.rigid_layout import lay_out
from acs_cl.benchmarks.workloads.rigid_models import MODELS, PAIR
from acs_cl.benchmarks.workloads.rigid_start import start
from acs_cl.benchmarks.workloads.workload import Results, ready
from acs_cl.opencl_c.kernel_files import kernel_source

MACROS: Mapping[str, Any] = {
    "DT": f"{layouts.DT}f",
    "SKIN": f"{layouts.SKIN}f",
    "SLOW": f"{layouts.SLOW}f",
    "FRICTION": f"{layouts.FRICTION}f",
    "MARGIN": f"{layouts.MARGIN}f",
    "TURN": f"{2 * np.pi:.9g}f",
    "POSE": layouts.POSE,
    "MOTION": layouts.MOTION,
    "ROW": layouts.ROW,
    "JOINT_ROW": layouts.JOINT_ROW,
    "LINE": layouts.LINE,
}


class RigidSize(NamedTuple):
    """Environments are a multiple of the work-items of a group."""

    model: str
    environments: int
    group: int
    frames: int
    substeps: int


class Call(NamedTuple):
    """A launch of `kernel`. `ready` does it; where a platform decides, the flag `when` is said.
    `touches`: the groups of parts whose state it reads or changes. `flag`: which flag it runs
    under, or none."""

    ready: Callable[..., Any]
    when: Any
    kernel: Any
    touches: tuple[str, ...]
    flag: int


class Rigid:
    """A batch of bodies. Decisions are made on the device."""

    def __init__(self, platform: Any, size: RigidSize, seed: int) -> None:
        self.platform = platform
        self.size = size
        self.layout = layout = lay_out(MODELS[size.model])
        self.begin = start(layout, size.environments, seed)
        self.program = platform.build(kernel_source("rigid.cl"), macros=MACROS)
        count, groups = size.environments, len(layout.pushes) + 1
        self.starts = platform.array(self.begin.poses)
        self.poses = platform.array(self.begin.first)
        self.motions = platform.array(self.begin.motions)
        self.impulses = platform.zeros((layout.slots, layouts.MOTION, count))
        self.rates = platform.array(self.begin.rates)
        self.phases = platform.array(self.begin.phases)
        self.actions = platform.zeros((layout.actions, count))
        self.fallen = platform.zeros(count, np.uint32)
        self.episodes = platform.zeros(count, np.uint32)
        self.flags = platform.zeros((groups, layouts.LINE), np.uint32)
        self.counts = platform.zeros(groups, np.uint32)
        self.shapes = {name: platform.array(one.shapes) for name, one in layout.sections.items()}
        self.local = (size.group, 1)
        self.opening = self._opening()
        self.again = self._again()
        self.broad = self._broad()
        self.forces = [*self._pulls(), *self._pushes()]
        self.motion = self._motion()

    def reset(self) -> None:
        """Begin everything again, by the same seed."""
        self.poses.set(self.begin.first)
        self.motions.set(self.begin.motions)
        self.phases.set(self.begin.phases)
        for array in (self.episodes, self.flags, self.counts):
            array.fill(0)

    def step(self) -> None:
        """Run all frames of one step."""
        for _ in range(self.size.frames):
            self._launch([*self.opening, self.again, *self.broad])
            for _ in range(self.size.substeps):
                self._launch(self.forces)
                self._launch(self.motion)

    def results(self) -> Results:
        """Return the state, the episodes that each environment began, and how often each flag was
        set."""
        flags = self.flags.get()[:, 0]
        return {
            "poses": self.poses.get()[:, :7],
            "motions": self.motions.get(),
            "episodes": self.episodes.get().astype(np.int64),
            "live": self.counts.get().astype(np.int64) + flags,
        }

    def _launch(self, calls: Sequence[Call]) -> None:
        for launch, when, _, _, _ in calls:
            if when is None:
                launch()
            else:
                launch(when=when)

    # ---- what there is to launch -----------------------------------------------------------------

    def _opening(self) -> list[Call]:
        layout, count = self.layout, self.size.environments
        model = layout.model
        acting = (
            self.rates, self.phases, self.actions, self.flags, self.counts,
            len(layout.pushes) + 1, count,
        )  # fmt: skip
        watched = model.parts[0].name
        judging = (self._pose(watched), self.fallen, self.flags[0], *model.fall, count)
        return [
            self._call(self.program.act, (count, layout.actions), acting),
            self._call(self.program.judge, (count, 1), judging, (watched,)),
        ]

    def _again(self) -> Call:
        count = self.size.environments
        args = (self.fallen, self.starts, self.poses, self.motions, self.episodes, count)
        everything = tuple(self.layout.sections)
        size = (count, self.layout.bodies)
        return self._call(self.program.begin_again, size, args, everything, 0)

    def _broad(self) -> list[Call]:
        """Search far enough ahead for the sub-steps of a frame."""
        calls = []
        count, time = self.size.environments, layouts.DT * self.size.substeps
        for contact, push in zip(self.layout.model.contacts, self.layout.pushes, strict=True):
            names = tuple(name for name in (contact.first, contact.second) if name)
            end = (self.flags[push.flag], time, count)
            if contact.kind == PAIR:
                pairs, size = self.platform.array(push.pairs), (count, len(push.pairs))
                args = (pairs, *self._of(names), *end)
                calls.append(self._call(self.program.near_pair, size, args, names))
            else:
                size = (count, self._parts(contact.first))
                args = (*self._of(names), *end)
                calls.append(self._call(self.program.near_plane, size, args, names))
        return calls

    def _pulls(self) -> list[Call]:
        """Launch joints and actuators."""
        calls = []
        count = self.size.environments
        for joints, pull in zip(self.layout.model.joints, self.layout.pulls, strict=True):
            names = (joints.parent, joints.child)
            state = [self._pose(name) for name in names] + [self._motion_of(name) for name in names]
            begin = (self.platform.array(pull.rows), self._parts(joints.parent), *state)
            size = (count, len(joints.at))
            out = [self.impulses[slots] for slots in pull.joint]
            kernel = getattr(self.program, f"joint_{pull.dof}")
            calls.append(self._call(kernel, size, (*begin, *out, count), names))
            out = [self.impulses[slots] for slots in pull.actuator]
            kernel = getattr(self.program, f"actuator_{pull.dof}")
            args = (*begin, self.actions, *out, pull.action, count)
            calls.append(self._call(kernel, size, args, names))
        return calls

    def _pushes(self) -> list[Call]:
        """Launch contacts."""
        calls = []
        count = self.size.environments
        for contact, push in zip(self.layout.model.contacts, self.layout.pushes, strict=True):
            out = [self.impulses[slots] for slots in push.slots]
            end = (*out, push.stiffness, push.damping, count)
            names = tuple(name for name in (contact.first, contact.second) if name)
            kernel = getattr(self.program, contact.kind)
            if contact.kind == PAIR:
                args = (self.platform.array(push.pairs), *self._of(names), *end)
                size = (count, len(push.pairs))
            else:
                args, size = (*self._of(names), *end), (count, self._parts(contact.first))
            touched = tuple(dict.fromkeys(names))
            calls.append(self._call(kernel, size, args, touched, push.flag))
        return calls

    def _motion(self) -> list[Call]:
        """Gather impulses, then move parts."""
        gather, move = [], []
        count = self.size.environments
        for name, section in self.layout.sections.items():
            parts, motion = self._parts(name), self._motion_of(name)
            table, masses = (self.platform.array(one) for one in (section.table, section.masses))
            impulses, size = self.impulses[section.slots], (count, parts)
            args = (table, masses, self.flags, impulses, motion, parts, count)
            gather.append(self._call(self.program.accumulate, size, args, (name,)))
            state = (motion, self._pose(name), count)
            move.append(self._call(self.program.integrate, size, state, (name,)))
        return [*gather, *move]

    def _of(self, names: Sequence[str]) -> list[Any]:
        """Return shapes, poses and motions of groups of parts: first all shapes, then all poses."""
        return [
            *(self.shapes[name] for name in names),
            *(self._pose(name) for name in names),
            *(self._motion_of(name) for name in names),
        ]

    def _call(
        self, kernel: Any, size: tuple[int, int], args: Any, touches: Any = (), flag: int = -1
    ) -> Call:
        when = self.flags[flag, 0] if flag >= 0 else None
        return Call(ready(kernel, size, self.local, *args), when, kernel, touches, flag)

    def _parts(self, name: str) -> int:
        return len(self.layout.sections[name].masses)

    def _pose(self, name: str) -> Any:
        return self.poses[self.layout.sections[name].bodies]

    def _motion_of(self, name: str) -> Any:
        return self.motions[self.layout.sections[name].bodies]


class RigidByHost(Rigid):
    """The same where the host decides: it reads the flags twice in a frame."""

    def step(self) -> None:
        """Run all frames of one step."""
        for _ in range(self.size.frames):
            self._launch(self.opening)
            if self.flags.get()[0, 0]:
                self._launch([self.again])
            self._launch(self.broad)
            live = self.flags.get()[:, 0]
            forces = [call for call in self.forces if call.flag < 0 or live[call.flag]]
            for _ in range(self.size.substeps):
                self._launch(forces)
                self._launch(self.motion)

    def _launch(self, calls: Sequence[Call]) -> None:
        for launch, *_ in calls:
            launch()
