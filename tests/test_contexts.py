"""What runtimes of a device share: a context, and the programs built in it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import inside
import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.devices import contexts
from acs_cl.devices.facts import may_include

SOURCE = "kernel void put(global int *x, int a) { x[get_global_id(0)] = a + N; }"


class Compiled:
    """How often a driver compiled for this thread: others may still build schedulers."""

    def __init__(self) -> None:
        self.times = self.in_all_threads = 0
        self._ours = threading.get_ident()

    def count(self, source: str) -> None:
        if "put" in source:  # and does not ask the compiler for its macros
            self.times += threading.get_ident() == self._ours
            self.in_all_threads += 1


@pytest.fixture
def compiled() -> Iterator[Compiled]:
    counted = Compiled()
    with inside.new_process(), inside.compiling(counted.count):
        yield counted


def results(rt: acs.Runtime, source: str = SOURCE, **options: Any) -> list[int]:
    x = rt.zeros(2, "i4")
    rt.build(source, **options).put((2,), None, x, 3)
    return list(map(int, x.get()))


def test_what_was_built_is_not_built_again(device: cl.Device, compiled: Compiled) -> None:
    for _ in range(3):
        with acs.Runtime(device, backend="lanes") as rt:
            assert results(rt, macros={"N": 1}) == [4, 4]
            assert results(rt, macros={"N": 2}) == [5, 5]
    assert compiled.times == 2
    with acs.Runtime(context=cl.Context([device]), backend="lanes") as rt:
        assert results(rt, macros={"N": 1}) == results(rt, macros={"N": 1}) == [4, 4]
    assert compiled.times == 4, "of a context of the program's own nothing is kept"


def test_one_program_serves_runtimes_at_once(device: cl.Device, compiled: Compiled) -> None:
    with (
        acs.Runtime(device, backend="lanes") as one,
        acs.Runtime(device, backend="lanes", memory="buffers") as two,
    ):
        programs = [rt.build(SOURCE, macros={"N": 0}) for rt in (one, two)]
        arrays = [rt.zeros(64, "i4") for rt in (one, two)]
        for step in range(100):
            for program, x in zip(programs, arrays, strict=True):
                program.put((32,), None, x[step % 32 :][:32], step)
        expected = np.zeros(64, "i4")
        for step in range(100):
            expected[step % 32 :][:32] = step
        assert all((x.get() == expected).all() for x in arrays)


def test_a_file_that_is_included_is_read_again(
    device: cl.Device, compiled: Compiled, tmp_path: Path
) -> None:
    source = '#include "n.h"\n' + SOURCE
    for n in (1, 7):
        (tmp_path / "n.h").write_text(f"#define N {n}\n")
        with acs.Runtime(device, backend="lanes") as rt:
            assert results(rt, source, options=["-I", str(tmp_path)]) == [3 + n] * 2


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ('// whoever is included\n/* include */ constant char t[] = "include";', False),
        ("#include <n.h>", True),
        ("%: /* a */ inc\\\nlude N", True),
        ("??=include N", True),
        ("// off ??/\n still off\n#include N", True),
    ],
)
def test_only_directives_read_files(text: str, reads: bool) -> None:
    assert may_include(text, ()) == reads
    assert may_include(text, ("-include", "n.h"))


def test_runtimes_of_a_device_share_the_build_of_a_scheduler(
    device: cl.Device, compiled: Compiled
) -> None:
    times = []
    for _ in range(2):
        with acs.Runtime(device, backend="device") as rt:
            program = rt.build(SOURCE, macros={"N": 1})
            rt.prebuild(program.put)
            assert rt.stats()["scheduler"]["builds"] == 1
        times.append(compiled.in_all_threads)
    assert times[0] == times[1]


def test_what_does_not_build_says_so_each_time(device: cl.Device, compiled: Compiled) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        for _ in range(2):
            with pytest.raises(acs.AcsError, match="does not build"):
                rt.build(SOURCE)  # N is nothing
    assert compiled.times == 2


def test_few_are_kept(device: cl.Device, compiled: Compiled) -> None:
    with inside.limit("programs of a context", 2), acs.Runtime(device, backend="lanes") as rt:
        for n in (1, 2, 1, 3, 1, 2):  # 2 is the one that was not asked for the longest, then 3
            rt.build(SOURCE, macros={"N": n})
    assert compiled.times == 4


def test_the_compiler_is_asked_in_the_programs_context(device: cl.Device) -> None:
    """Making another one takes NVIDIA's driver 0.4 s, and it has room for a hundred."""
    with inside.new_process():
        context = cl.Context([device])
        with acs.Runtime(context=context, backend="serial"):
            assert contexts.context_to_ask(device) == context
        contexts.forget_context(context)
        assert contexts.context_to_ask(device) != context
        with acs.Runtime(context=context, backend="serial"):
            pass
        del context
        gc.collect()
        assert contexts.context_to_ask(device).devices == [device]
        with acs.Runtime(device, backend="serial") as runtime:
            assert contexts.context_to_ask(device) == runtime.context


def test_a_context_that_has_failed_takes_its_programs_with_it(
    device: cl.Device, compiled: Compiled
) -> None:
    with acs.Runtime(device, backend="lanes") as rt:
        assert results(rt, macros={"N": 1}) == [4, 4]
        contexts.forget_context(rt.context)
        assert contexts.shared(rt.context) is None
    with acs.Runtime(device, backend="lanes") as rt:
        assert results(rt, macros={"N": 1}) == [4, 4]
    assert compiled.times == 2
