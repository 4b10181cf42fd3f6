"""What shells, debuggers and tests of a program do with the objects of the library.

Nothing raises that they do not expect, and what they show is what a call takes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import acs_cl as acs
from acs_cl.errors import UnreadableError

SOURCE = """
kernel void add(global const float *x, global float *y, int n)
{ int i = get_global_id(0); if (i < n) y[i] += x[i]; }
kernel void native(global int *x) { *x = 1; }
"""


@pytest.mark.parametrize("memory", ["svm", "buffers"])
def test_all_members_of_all_objects_can_be_listed(device: cl.Device, memory: str) -> None:
    if memory == "svm" and not device.svm_capabilities:
        pytest.skip("the device has no shared virtual memory")
    with acs.Runtime(device, memory=memory) as rt:
        program = rt.build(SOURCE)
        x, y, freed = rt.zeros(8), rt.zeros(8), rt.zeros(8)
        freed.free()
        with rt.record() as graph:
            recorded = program.add((8,), None, x, y, 8)
        things = (
            rt, program, program.add, program.add.signature,
            x, x[4:], x[::-1], x[3], rt.zeros(0), freed,
            program.add((8,), None, x, y, 8), graph, recorded, graph.replay(), rt.stats(), rt.plan,
            program.add.launch_many((8,), None, x, y, [8, 8]), acs.Queue(rt.context, runtime=rt),
        )  # fmt: skip
        for thing in things:
            assert inspect.getmembers(thing)
            assert repr(thing)
            assert f"{thing}"


def test_an_attribute_without_a_value_says_why(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        x = rt.zeros(0)
        assert not hasattr(rt, "trace")
        assert not hasattr(x, "data")
        with pytest.raises(UnreadableError, match=r"nothing was traced: .* trace=True"):
            _ = rt.trace
        with pytest.raises(acs.UsageError, match="has no memory"):
            _ = x.data
        with rt.record() as graph:
            recorded = rt.zeros(4).fill(1)
        assert not hasattr(recorded, "done")
        with pytest.raises(acs.UsageError, match=r"done: launch .* is recorded and does not run"):
            _ = recorded.done
        graph.close()
        freed = rt.zeros(4)
        freed.free()
        with pytest.raises(acs.UsageError, match=r"given back by free\(\)"):
            _ = freed.T


def test_signatures_are_what_calls_take() -> None:
    options = inspect.signature(acs.Runtime).parameters
    assert list(options)[:3] == ["device", "context", "backend"]
    assert options["watchdog_s"].default is None

    class Own(acs.Runtime):
        def __init__(self, lanes: int) -> None:
            super().__init__(lanes=lanes)

    assert list(inspect.signature(Own).parameters) == ["lanes"]


def test_the_signature_of_a_kernel_names_its_parameters(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        program = rt.build(SOURCE)
        found = inspect.signature(program.add)
        expected = (
            "(global_size, local_size, x: 'float*', y: 'float*', n: 'int', /, *, reads=None, "
        )
        assert str(found).startswith(expected)
        x = rt.zeros(4)
        found.bind((4,), None, x, x, 4, when=None)
        with pytest.raises(TypeError):
            found.bind((4,), None, x)
        odd = rt.build("kernel void k(global int *in, int when, int global_size) { *in = when; }").k
        names = list(inspect.signature(odd).parameters)
        assert names[:5] == ["global_size", "local_size", "in_", "when_", "global_size_"]


def test_kernels_of_a_program_are_counted_as_keys_of_a_dict(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        program = rt.build(SOURCE)
        assert "add" in program
        assert "native" in program
        assert "kernels" not in program
        assert 3 not in program
        assert list(program) == list(program.kernels) == ["add", "native"]
        assert {name: program[name].name for name in program} == {"add": "add", "native": "native"}
        with pytest.raises(TypeError, match="not iterable"):
            iter(program.add)  # type: ignore[call-overload]
        assert not rt.build("void f(global int *x) { *x = 1; }").kernels


def test_functions_of_numpy_refuse_an_array_instead_of_guessing(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        x = rt.array(np.arange(6, dtype="f4").reshape(2, 3))
        values: Any = x
        assert (np.shape(values), np.ndim(values), np.size(values)) == ((2, 3), 2, 6)
        for call in (
            lambda: np.array_equal(values, x.get()),  # which took an error for a difference
            lambda: np.array_equiv(x.get(), values),
            lambda: np.allclose(values, x.get()),
            lambda: np.concatenate([x.get(), values]),
            lambda: np.size(values, 0),
            lambda: np.asarray(values),
        ):
            with pytest.raises(acs.UsageError, match=r"on the device.* get\(\)"):
                call()


def test_bytes_are_no_text_with_an_end(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        with pytest.raises(acs.UsageError, match=r"write np\.frombuffer\(values, 'u1'\)"):
            rt.array(b"ab\0\0")
        with pytest.raises(acs.UsageError, match=r"write np\.frombuffer\(values, 'u1'\)"):
            rt.zeros(4, "u1").set(b"abcd")
        assert rt.array(np.frombuffer(b"ab\0\0", "u1")).get().tobytes() == b"ab\0\0"
        assert rt.array(bytearray(b"ab\0\0")).get().tobytes() == b"ab\0\0"
        names = rt.zeros(2, "S3")  # whose elements are bytes
        names[0].set(b"ab")
        names[1].set(np.bytes_(b"abc"))
        assert names.get().tolist() == [b"ab", b"abc"]


class Shown:
    """Stands for the printer of IPython."""

    def __init__(self, thing: Any) -> None:
        self.told = ""
        vars(type(thing))["_repr_pretty_"](thing, self, False)  # as IPython finds it

    def text(self, text: str) -> None:
        self.told += text


def test_a_cell_of_a_notebook_shows_what_print_does(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        x = rt.zeros(4)
        with rt.measure() as measured:
            handle = x.fill(1)
        for thing in (rt.explain(handle), measured):
            assert Shown(thing).told == str(thing) != repr(thing)


def test_fields_of_records_are_on_the_host(device: cl.Device) -> None:
    with acs.Runtime(device) as rt:
        records = rt.zeros(3, np.dtype([("a", "i4"), ("b", "f4")]))
        with pytest.raises(acs.UsageError, match=r"a field of records is get\(\)\['a'\]"):
            _ = records["a"]
        assert records.get()["a"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (acs.Array, r"write rt\.array\(values\)"),
        (acs.Program, r"write rt\.build\(source\)"),
        (acs.Kernel, "attributes of what"),
        (acs.Graph, r"with rt\.record\(\)"),
    ],
)
def test_classes_say_what_makes_their_objects(device: cl.Device, kind: Any, said: str) -> None:
    with acs.Runtime(device) as rt:
        for parts in ((), ([1, 2, 3],), (rt,), (rt, "kernel void k() { }"), ((3,), "f4")):
            with pytest.raises(acs.UsageError, match=f"^{kind.__name__}.*{said}"):
                kind(*parts)
