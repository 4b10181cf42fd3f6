"""Rigid bodies: the physics holds, decisions follow the input, groups are independent."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import acs_cl as acs
from acs_cl.benchmarks.workloads import rigid_layout
from acs_cl.benchmarks.workloads.rigid_geometry import pivots, product, rotate
from acs_cl.benchmarks.workloads.rigid_layout import DT, lay_out
from acs_cl.benchmarks.workloads.rigid_models import MODELS, Fall
from acs_cl.benchmarks.workloads.rigid_program import Call, Rigid, RigidByHost, RigidSize
from acs_cl.benchmarks.workloads.rigid_reference import World, reference
from acs_cl.benchmarks.workloads.rigid_start import start

NAMES = tuple(MODELS)
FREE = tuple(name for name in NAMES if name != "grasp")  # a palm that is held takes up momentum
FRAMES, SUBSTEPS = 13, 4  # 52 sub-steps


@pytest.fixture(scope="module")
def rt() -> Any:
    with acs.Runtime(backend="serial") as runtime:
        yield runtime


def sized(name: str, frames: int = FRAMES, substeps: int = SUBSTEPS) -> RigidSize:
    return RigidSize(name, 64, 64, frames, substeps)


# ---- the models ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "bodies", "degrees"),
    [("ant", 9, 8), ("grasp", 14, 16), ("humanoid", 11, 17), ("cheetah", 7, 6), ("walker2d", 7, 6)],
)
def test_bodies_and_degrees_of_freedom(name: str, bodies: int, degrees: int) -> None:
    layout = lay_out(MODELS[name])
    assert (layout.bodies, layout.actions) == (bodies, degrees)


@pytest.mark.parametrize("name", NAMES)
def test_every_slot_has_one_writer_and_one_reader(name: str) -> None:
    layout = lay_out(MODELS[name])
    written: list[int] = []
    for slots in itertools.chain(
        *(pull.joint + pull.actuator for pull in layout.pulls),
        *(push.slots for push in layout.pushes),
    ):
        written += range(slots.start, slots.stop)
    assert sorted(written) == list(range(layout.slots))
    read: list[int] = []
    for section in layout.sections.values():
        bodies = section.bodies.stop - section.bodies.start
        entries = section.table[bodies + 1 :].reshape(-1, 2)
        assert section.table[bodies] == len(entries)
        read += [section.slots.start + int(slot) for slot, _ in entries]
    assert sorted(read) == list(range(layout.slots))


# ---- the physics ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_same_as_numpy_after_fifty_sub_steps(rt: acs.Runtime, name: str) -> None:
    """Rounding grows while bodies touch the ground; decisions were never as close as that."""
    size = sized(name)
    layout = lay_out(MODELS[name])
    expected = reference(layout, start(layout, 64, 2), FRAMES, SUBSTEPS)
    run = Rigid(rt, size, 2)
    run.step()
    got = run.results()
    for exact in ("live", "episodes"):
        assert (got[exact] == expected.results[exact]).all(), exact
    off = {key: float(np.abs(got[key] - expected.results[key]).max()) for key in got}
    assert off["poses"] < 5e-5, off
    assert off["motions"] < 5e-3, off
    assert min(expected.broad, expected.fall) > 2 * off["poses"], expected[1:]


@pytest.mark.parametrize("name", FREE)
def test_momentum_is_kept_without_contacts_and_gravity(
    rt: acs.Runtime, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    floating = MODELS[name]._replace(name="floating", contacts=(), fall=Fall(-1e9, -2, 1e9))
    monkeypatch.setitem(MODELS, "floating", floating)
    monkeypatch.setattr(rigid_layout, "GRAVITY", 0.0)
    layout = lay_out(floating)
    begin = start(layout, 64, 3)
    world = World(layout, begin._replace(first=begin.poses))
    before = world.momentum()
    for _ in range(FRAMES):
        world.frame(SUBSTEPS)
    assert np.abs(world.spin).max() > 0.5  # it does move
    free = [slice(None), slice(1, 2) if floating.planar else slice(None)]  # what is not held
    for was, has, which in zip(before, world.momentum(), free, strict=True):
        assert np.abs(has - was)[:, which].max() < 1e-9
    run = Rigid(rt, sized("floating"), 3)
    run.poses.set(begin.poses)
    run.step()
    got = run.results()
    world.velocity, world.spin = (
        got["motions"][:, at : at + 3].transpose(0, 2, 1).astype(float) for at in (0, 3)
    )
    world.place = got["poses"][:, :3].transpose(0, 2, 1).astype(float)
    for was, has, which in zip(before, world.momentum(), free, strict=True):
        assert np.abs(has - was)[:, which].max() < 5e-5


@pytest.mark.parametrize("name", NAMES)
def test_in_a_heap_every_contact_pushes_as_in_numpy(rt: acs.Runtime, name: str) -> None:
    layout = lay_out(MODELS[name])
    begin = start(layout, 64, 4)
    rng = np.random.default_rng(4)
    heap = begin.poses.copy()
    heap[:, :3] = rng.uniform(-0.06, 0.06, heap[:, :3].shape)
    heap[:, 3:7] = rng.normal(0, 1, heap[:, 3:7].shape)
    heap[:, 3:7] /= np.linalg.norm(heap[:, 3:7], axis=1, keepdims=True)
    heap[0, 2], heap[0, 3:6], heap[0, 6] = layout.model.fall.low + 0.01, 0, 1  # still up
    begin = begin._replace(first=heap)
    world = World(layout, begin)
    pushes = []
    for group in range(len(layout.pushes)):
        force = np.zeros((layout.bodies, 64, 3))
        world.push(group, force, np.zeros_like(force))
        pushes.append(bool(force.any()))
    assert sum(pushes) >= len(pushes) - 3
    world.frame(1)
    run = Rigid(rt, sized(name, 1, 1), 4)
    run.poses.set(heap)
    run.step()
    got, expected = run.results(), world.results()
    assert (got["live"] == expected["live"]).all()
    impulses = run.impulses.get()
    for push, pushed in zip(layout.pushes, pushes, strict=True):
        for slots in push.slots:
            assert (np.abs(impulses[slots]).max() > 1e-3) == pushed
    for key in ("poses", "motions"):
        scale = max(1.0, float(np.abs(expected[key]).max()))
        assert np.abs(got[key] - expected[key]).max() < 2e-5 * scale, key


def test_what_touches_nothing_falls() -> None:
    model = MODELS["ant"]
    layout = lay_out(model)
    begin = start(layout, 64, 0)
    begin = begin._replace(first=begin.poses + np.array([0, 0, 9, *[0] * 5])[:, None])
    world = World(layout, begin)
    mass = 1 / world.masses[..., 0:1]
    middle, speed = ((mass * one).sum(axis=0) for one in (world.place, world.velocity))
    for _ in range(10):
        world.frame(4)
    n = 40
    drop = rigid_layout.GRAVITY * DT**2 * n * (n + 1) / 2
    expected = middle + n * DT * speed + mass.sum() * drop * np.array([0, 0, 1])
    assert not world.live[1:].any()
    assert np.abs((mass * world.place).sum(axis=0) - expected).max() < 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_joints_hold_and_nothing_sinks(name: str) -> None:
    layout = lay_out(MODELS[name])
    world = World(layout, start(layout, 64, 1))
    for _ in range(30):
        world.frame(SUBSTEPS)
    for joints, pull in zip(layout.model.joints, layout.pulls, strict=True):
        parents = layout.sections[joints.parent].bodies
        child = np.arange(len(joints.at)) + layout.sections[joints.child].bodies.start
        parent = np.minimum(parents.start + np.arange(len(child)), parents.stop - 1)
        row = pull.rows.astype(float)[:, None]
        fixed, moved = world.turn[parent], world.turn[child]
        gap = world.place[parent] + rotate(fixed, row[..., 0:3]) - world.place[child]
        gap -= rotate(moved, row[..., 3:6])
        assert np.linalg.norm(gap, axis=-1).max() < 0.08, joints.name
        frame = row[..., 6:10]
        _, angles = pivots(product(fixed, frame), product(moved, frame))
        for i, (low, high) in enumerate(joints.limits):
            degrees = np.degrees(angles[..., i])
            assert degrees.min() > low - 25, joints.name
            assert degrees.max() < high + 25, joints.name
        assert np.abs(np.degrees(angles[..., pull.dof :])).max(initial=0) < 15, joints.name
    assert world.place[..., 2].min() > 0
    if MODELS[name].planar:
        assert np.abs(world.place[..., 1] - world.starts[..., 1]).max() < 1e-6


# ---- what depends on the input -------------------------------------------------------------------


class Told(RigidByHost):
    """Remembers what it launches."""

    def __init__(self, platform: Any, size: RigidSize, seed: int) -> None:
        super().__init__(platform, size, seed)
        self.told: list[tuple[tuple[str, ...], int]] = []

    def _launch(self, calls: Any) -> None:
        self.told += [(call.touches, call.flag) for call in calls]
        super()._launch(calls)


@pytest.mark.parametrize("name", NAMES)
def test_other_inputs_give_other_graphs(rt: acs.Runtime, name: str) -> None:
    size = sized(name, frames=6)
    graphs = []
    for seed in (0, 1, 2):
        by_host, by_device = Told(rt, size, seed), Rigid(rt, size, seed)
        by_host.step()
        by_device.step()
        one, two = by_host.results(), by_device.results()
        for key, values in one.items():
            assert (values == two[key]).all(), key  # to the bit: the kernels are the same
        graphs.append((by_host.told, two["live"].tolist()))
        live = sum(flag > 0 for _, flag in by_host.told)
        assert 0 < live < len(by_host.forces) * 6 * SUBSTEPS  # something is left out
    assert len({repr(told) for told, _ in graphs}) > 1
    assert len({repr(live) for _, live in graphs}) > 1


def test_the_fallen_begin_again_and_nobody_else(rt: acs.Runtime) -> None:
    size = sized("ant", frames=1, substeps=1)
    run = Rigid(rt, size, 0)
    lying = (run.begin.first != run.begin.poses).any(axis=(0, 1))
    assert 0 < lying.sum() < 64
    run.step()
    assert (run.results()["episodes"] == lying).all()
    up = run.results()["poses"][0, 2]
    assert (up > MODELS["ant"].fall.low).all()


# ---- what runs at the same time ------------------------------------------------------------------


def handles_of(run: Rigid, calls: list[Call]) -> list[acs.Handle]:
    return [call.ready(when=call.when) if call.flag >= 0 else call.ready() for call in calls]


@pytest.mark.parametrize("name", NAMES)
def test_groups_of_one_sub_step_are_independent(rt: acs.Runtime, name: str) -> None:
    run = Rigid(rt, sized(name), 0)
    parts = len(run.layout.sections)
    for calls in (run.broad, run.forces, run.motion[:parts], run.motion[parts:]):
        for one, two in itertools.combinations(handles_of(run, calls), 2):
            assert not rt.explain(one, two).ordered, rt.explain(one, two)


def test_a_joint_waits_for_its_own_parts_only(rt: acs.Runtime) -> None:
    run = Rigid(rt, sized("humanoid"), 0)
    moved = dict(zip(run.layout.sections, handles_of(run, run.motion)[7:], strict=True))
    for call, force in zip(run.forces, handles_of(run, run.forces), strict=True):
        for name, handle in moved.items():
            assert rt.explain(handle, force).ordered == (name in call.touches)


@pytest.mark.parametrize(
    ("name", "launches"),
    [("ant", 37), ("grasp", 33), ("humanoid", 49), ("cheetah", 31), ("walker2d", 25)],
)
def test_a_frame_is_four_deep_and_each_sub_step_three(
    rt: acs.Runtime, name: str, launches: int
) -> None:
    """As docs/design/workloads.md says; with one sub-step there."""
    run = Rigid(rt, sized(name), 0)
    begin = [*run.opening, run.again, *run.broad]
    assert len(begin) + len(run.forces) + len(run.motion) == launches
    handles = handles_of(run, [*begin, *(run.forces + run.motion) * 2])
    depths: list[int] = []
    for at, handle in enumerate(handles):
        before = [depths[i] for i in range(at) if rt.explain(handles[i], handle).ordered]
        depths.append(1 + max(before, default=0))
    assert max(depths[: len(begin)]) == 4
    assert max(depths) == 4 + 3 + 3


# ---- the device decides, and the graph is the same for every input -------------------------------


def test_all_of_it_runs_on_the_scheduler() -> None:
    size = sized("walker2d", frames=3)
    with acs.Runtime(backend="device") as rt:
        run = Rigid(rt, size, 0)
        calls = [*run.opening, run.again, *run.broad, *run.forces, *run.motion]
        rt.prebuild(*{id(call.kernel): call.kernel for call in calls}.values())
        before = rt.stats()["scheduler"]["tasks"]
        run.step()
        got = run.results()
        tasks = rt.stats()["scheduler"]["tasks"] - before
        each = len(run.forces) + len(run.motion)
        assert tasks == 3 * (len(run.opening) + 1 + len(run.broad) + SUBSTEPS * each)
    layout = lay_out(MODELS["walker2d"])
    expected = reference(layout, start(layout, 64, 0), 3, SUBSTEPS).results
    assert (got["live"] == expected["live"]).all()
    assert np.abs(got["poses"] - expected["poses"]).max() < 5e-5


def test_one_recording_serves_every_input(make: Callable[..., acs.Runtime]) -> None:
    rt = make()
    size = sized("walker2d", frames=2)
    run, plain = Rigid(rt, size, 0), Rigid(rt, size, 0)
    other = Rigid(rt, size, 5)
    with rt.record() as graph:
        run.step()
    for seed, again in ((0, plain), (5, other)):
        if seed:
            run.begin = again.begin
            run.rates.set(again.begin.rates)
            run.starts.set(again.begin.poses)
            run.reset()
        for _ in range(2):
            graph.replay()
            again.step()
        got, expected = run.results(), again.results()
        for key, values in expected.items():
            assert (got[key] == values).all(), (seed, key)
