"""Random programs: every backend and policy against NumPy, which runs the same program in order.

`ACS_CL_FUZZ=n` asks for n programs in all instead of 150. Hypothesis shrinks what fails and prints
the program; its seed comes with `--hypothesis-seed`.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Iterator

import pyopencl as cl
import pytest
from conftest import CONFIGURATIONS, Environment
from fuzz.kernels import MODES, SOURCE
from fuzz.machine import AcsMachine
from fuzz.oracle import NumpyMachine
from fuzz.runtimes import ORDER, Ways, keep_programs
from fuzz.steps import NAMES, Step, compare, run
from fuzz.threads import in_threads
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sampling import EVERY, SAMPLE

import acs_cl as acs
from acs_cl import testing

FUZZ = int(os.environ.get("ACS_CL_FUZZ", "150"))
EACH = max(1, FUZZ // 9)
"""Programs per test: nine tests share them."""

fuzz = settings(
    max_examples=EACH,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
"""A program takes as long as its launches; runtimes are made once and used by all examples."""

Maker = Callable[..., tuple[acs.Runtime, acs.Program]]

windows = st.sampled_from((None, 5, 2, 1))
memories = st.sampled_from(("svm", "buffers"))


def programs(most: int = 30) -> st.SearchStrategy[list[Step]]:
    """Programs of up to `most` steps."""
    steps = st.tuples(st.sampled_from(NAMES), st.binary(min_size=11, max_size=11))
    return st.lists(steps, max_size=most)


@pytest.fixture(scope="module")
def kept(device: cl.Device) -> Iterator[Maker]:
    """Runtimes by configuration, each made once, with the kernels built."""
    keep_programs()
    made: dict[tuple[object, ...], tuple[acs.Runtime, acs.Program]] = {}

    def one(
        backend: str, issue: str, window: int | None, memory: str
    ) -> tuple[acs.Runtime, acs.Program]:
        key = (backend, issue, window, memory)
        if key not in made:
            if backend == "device":
                memory = "svm"
            runtime = acs.Runtime(
                device, backend=backend, issue=issue, window=window, memory=memory
            )
            program = runtime.build(SOURCE)
            runtime.prebuild(*(getattr(program, name) for name in program.kernels))
            made[key] = runtime, program
        return made[key]

    yield one
    for runtime, _ in made.values():
        runtime.close()


def check(program: list[Step], made: tuple[acs.Runtime, acs.Program], failing: bool) -> None:
    expected = NumpyMachine(failing)
    run(program, expected)
    got = AcsMachine(*made, failing=failing)
    try:
        run(program, got)
    finally:
        got.let_go()
    compare(program, expected, got)


def test_inference_finds_what_the_kernels_do(kept: Maker) -> None:
    _, program = kept("serial", "eager", None, "svm")
    for name, modes in MODES.items():
        found = getattr(program, name).signature.parameters
        modes_found = tuple(p.mode for p in found if p.space == "global")
        assert modes_found == modes, name


@fuzz
@given(programs(), windows, memories)
def test_random_programs_give_what_numpy_gives(
    kept: Maker,
    configuration: tuple[str, str],
    program: list[Step],
    window: int | None,
    memory: str,
) -> None:
    check(program, kept(*configuration, window, memory), failing=False)


@pytest.mark.parametrize(
    "first",
    [
        ("slow", b"I\xd4{\x1e=\xd8\xff\xb1\xccxP"),
        ("every", b"\x03\x04\x1b\x00\x00\x00\x01\x01\x00\x00\x00"),
        ("part", b"\x03\x05\x1c\x00\x00\x00\x01\x02\x00\x00\x00"),
    ],
    ids=lambda step: step[0],
)
def test_poison_reaches_a_launch_by_the_bytes_it_touches_of_its_view(
    kept: Maker, first: Step
) -> None:
    """The view has poisoned bytes of which the kernel touches none."""
    fails = ("host", b"O\xc5\x87\xf3\xd7\xf4f\xd7\x95\xf7x")
    reads = ("into_f4", b"\xb9\xbdf\xc9.\x11\xadG\xcf9\xa9")
    check([fails, first, reads], kept("serial", "eager", None, "svm"), failing=True)


@pytest.mark.rotate("backend", 2)
@pytest.mark.parametrize("backend", ["auto", "serial", "out_of_order", "lanes", "device"])
def test_random_programs_are_the_same_where_python_plans_every_launch(
    device: cl.Device, backend: str, environment: Environment
) -> None:
    environment(ACS_CL_NO_PLANS="1")
    try:
        runtime = acs.Runtime(device, backend=backend)
    except acs.DeviceError as error:
        pytest.skip(f"{device.name.strip()} cannot: {error}")
    with runtime:
        made = runtime, runtime.build(SOURCE)
        for seed in range(EACH):
            rng = random.Random(seed)
            program = [(rng.choice(NAMES), rng.randbytes(11)) for _ in range(30)]
            check(program, made, failing=seed % 3 == 0)
        assert testing.made_by_core(runtime) == 0  # the core has made none by itself


@fuzz
@given(
    programs(),
    st.sampled_from(CONFIGURATIONS),
    windows,
)
def test_random_programs_with_failures_lose_what_follows_and_nothing_else(
    kept: Maker,
    program: list[Step],
    configuration: tuple[str, str],
    window: int | None,
) -> None:
    runtime, _ = made = kept(*configuration, window, "svm")
    check(program, made, failing=True)
    with contextlib.suppress(acs.PoisonedError):
        runtime.finish()
    runtime.finish()  # each failure is told once


@fuzz
@given(
    st.lists(programs(15), min_size=2, max_size=3),
    st.sampled_from(CONFIGURATIONS),
    windows,
)
def test_random_programs_of_several_threads_do_not_disturb_each_other(
    kept: Maker,
    several: list[list[Step]],
    configuration: tuple[str, str],
    window: int | None,
) -> None:
    """Each thread has arrays of its own; the runtime, its window and its memory are shared."""
    made = kept(*configuration, window, "svm")

    def one(index: int) -> None:
        check(several[index], made, failing=False)

    in_threads(one, len(several))


@pytest.mark.parametrize("seed", range(2))
def test_long_random_programs_give_what_numpy_gives(kept: Maker, seed: int) -> None:
    """Longer than Hypothesis likes them: many launches in flight at once."""
    rng = random.Random(seed)
    names = [*MODES, *MODES, *MODES, "copy", "copy", "host", "new", "fill", "set", "get"]
    program = [(rng.choice(names), rng.randbytes(11)) for _ in range(400)]
    for configuration in (("out_of_order", "eager", None, "svm"), ("lanes", "eager", 5, "buffers")):
        check(program, kept(*configuration), failing=False)


def test_programs_of_seeds_give_what_numpy_gives_in_every_configuration() -> None:
    """With what the others leave out: graphs that change, images, included files, variables of the
    program, threads. A sample has one of three programs for each configuration. `random_batches.py`
    runs many of these."""
    ways = Ways()
    each = len(set(ORDER)) - 1  # the last configuration, which is checked, has one program in all
    first = SAMPLE % 3 * each
    seeds = range(len(ORDER)) if EVERY else [*range(first, first + each), len(ORDER) - 1]
    try:
        outcomes = [ways.one(seed) for seed in seeds]
    finally:
        ways.close()
    assert {outcome.configuration for outcome in outcomes} == set(ORDER)
    assert any(outcome.programs > 1 for outcome in outcomes)
