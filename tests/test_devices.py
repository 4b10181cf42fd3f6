"""Choosing a device: names, indices and the environment; and the repair of PoCL's CPU name."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform as host
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import inside
import pyopencl as cl
import pytest
from conftest import Environment

from acs_cl import devices
from acs_cl.errors import DeviceError, UsageError

on_linux_x86 = pytest.mark.skipif(
    sys.platform != "linux" or host.machine() != "x86_64",
    reason="the repair exists on Linux x86-64 only",
)


FakeHost = Callable[..., list[Any]]
Platforms = Callable[[Callable[[], list[Any]]], None]


@pytest.fixture
def fake_host(platforms: Platforms, environment: Environment) -> FakeHost:
    environment(PYOPENCL_CTX=None)
    return partial(_fake_host, platforms)


def _fake_host(install: Platforms, **platforms: list[str]) -> list[Any]:
    """Platforms of the given names with devices of the given names; one with "GPU" in it is one."""
    made = []
    for platform_name, names in platforms.items():
        platform = SimpleNamespace(name=platform_name.replace("_", " "), version="OpenCL 3.0")
        there = [
            SimpleNamespace(
                name=name,
                platform=platform,
                type=cl.device_type.GPU if "GPU" in name else cl.device_type.CPU,
                version="OpenCL 3.0",
                driver_version="1",
                max_compute_units=4,
                global_mem_size=2**30,
            )
            for name in names
        ]
        platform.get_devices = lambda there=there: there
        made.append(platform)
    install(lambda: made)
    return [device for platform in made for device in platform.get_devices()]


def real_device() -> cl.Device:
    there = devices.devices()
    if not there:
        pytest.skip("no OpenCL device on this machine")
    return devices.choose()


# {{{ choosing


def test_none_prefers_a_gpu_then_pocl_then_the_first(fake_host: FakeHost) -> None:
    pocl = {"Portable_Computing_Language": ["cpu"]}
    there = fake_host(Intel=["Xeon"], **pocl, NVIDIA=["GPU 0", "GPU 1"])
    assert devices.choose() is there[2]
    there = fake_host(Intel=["Xeon"], **pocl)
    assert devices.choose() is there[1]
    there = fake_host(Intel=["Xeon"], Other=["thing"])
    assert devices.choose() is there[0]


def test_a_name_is_a_part_of_platform_and_device_in_any_case(
    fake_host: FakeHost,
) -> None:
    there = fake_host(Intel=["Xeon"], NVIDIA_CUDA=["GPU H200"])
    assert devices.choose("xeon") is there[0]
    assert devices.choose("cuda / gpu") is there[1]
    assert devices.choose(1) is devices.choose("1") is there[1]
    assert devices.choose("200") is there[1], "no index, so a part of a name"


def test_an_exact_name_wins_over_part_matches(fake_host: FakeHost) -> None:
    there = fake_host(Intel=["Xeon Gold", "Xeon"])
    assert devices.choose("intel / xeon") is there[1]


@pytest.mark.parametrize("spec", ["GPU", "nvidia / gpu", "nothing", "", 7, -1])
def test_an_ambiguous_or_unknown_device_is_an_error_with_the_list(
    fake_host: FakeHost, spec: Any
) -> None:
    fake_host(Intel=["Xeon"], NVIDIA=["GPU 0", "GPU 1"])
    with pytest.raises(UsageError) as caught:
        devices.choose(spec)
    for line in ("0: Intel / Xeon", "1: NVIDIA / GPU 0", "2: NVIDIA / GPU 1"):
        assert line in str(caught.value)


@pytest.mark.parametrize("spec", [1.5, True, b"GPU", ["GPU"]])
def test_other_types_are_a_usage_error(fake_host: FakeHost, spec: Any) -> None:
    fake_host(NVIDIA=["GPU 0"])
    with pytest.raises(UsageError, match="got "):
        devices.choose(spec)


@pytest.mark.parametrize(
    ("wish", "index"),
    [("0", 0), ("1", 1), ("1:1", 2), ("nvidia:gpu 1", 2), (":", 0), (":xeon", 0), ("NVIDIA:0", 1)],
)
def test_the_environment_means_what_it_means_to_pyopencl(
    fake_host: FakeHost, environment: Environment, wish: str, index: int
) -> None:
    there = fake_host(Intel=["Xeon"], NVIDIA=["GPU 0", "GPU 1"])
    environment(PYOPENCL_CTX=wish)
    assert devices.choose() is there[index]
    assert devices.choose(0) is there[0], "a device that the program names wins"


def test_the_environment_agrees_with_pyopencl_on_real_devices(
    environment: Environment,
) -> None:
    real_device()
    for p, platform in enumerate(cl.get_platforms()):
        for d, device in enumerate(platform.get_devices()):
            for wish in (f"{p}:{d}", f"{platform.name}:{d}"):
                environment(PYOPENCL_CTX=wish)
                assert devices.choose() == cl.choose_devices(answers=wish.split(":"))[0] == device


@pytest.mark.parametrize("wish", ["I", "AMD", "NVIDIA:GPU", "NVIDIA:7", "1:0,1", "0:0:0"])
def test_an_environment_that_fits_no_one_device_is_an_error_with_the_list(
    fake_host: FakeHost, environment: Environment, wish: str
) -> None:
    fake_host(Intel=["Xeon"], NVIDIA=["GPU 0", "GPU 1"])
    environment(PYOPENCL_CTX=wish)
    with pytest.raises(UsageError, match="PYOPENCL_CTX") as caught:
        devices.choose()
    assert "2: NVIDIA / GPU 1" in str(caught.value)


def test_equal_names_in_the_environment_are_no_ambiguity(
    fake_host: FakeHost, environment: Environment
) -> None:
    there = fake_host(NVIDIA=["GPU", "GPU"])
    environment(PYOPENCL_CTX="nvidia:gpu")
    assert devices.choose() is there[0]


def test_no_platform_says_what_to_install(platforms: Platforms) -> None:
    def none() -> list[cl.Platform]:
        raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    platforms(none)
    assert devices.devices() == []
    with pytest.raises(DeviceError, match="install"):
        devices.choose()


def test_a_real_device_is_its_own_choice_and_can_be_named() -> None:
    device = real_device()
    assert devices.choose(device) == device
    index = devices.devices().index(device)
    assert devices.choose(index) == device
    assert device.name.strip() in devices.describe(device)
    assert devices.key(device) == devices.key(devices.choose(index))


def test_a_chosen_device_builds_programs() -> None:
    context = cl.Context([real_device()])
    cl.Program(context, "kernel void one(global int *x) { x[0] = 1; }").build()


# }}}

# {{{ repair


class Record:
    """A driver's device record in memory of our own, with pointers to strings."""

    def __init__(self, *strings: ctypes.Array[Any] | int) -> None:
        self.strings = strings
        size = 512
        self.memory = (ctypes.c_uint64 * size)(*([0, 3, 2**63, 2**47 - 8] * (size // 4)))
        for place, string in enumerate(strings):
            address = string if isinstance(string, int) else ctypes.addressof(string)
            self.memory[40 + 7 * place] = address
        self.platform = SimpleNamespace(name=devices.POCL_PLATFORM, get_devices=lambda: [self])
        self.version = "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-generic"
        self.int_ptr = ctypes.addressof(self.memory)


def text(value: bytes = b"generic") -> Any:
    return ctypes.create_string_buffer(value, 24)


@pytest.fixture
def fresh(environment: Environment) -> Iterator[Environment]:
    environment(ACS_CL_POCL_CPU="auto")
    with inside.new_process():
        yield environment


def repair(record: Any) -> str:
    return devices.repair(record)


@on_linux_x86
def test_repair_overwrites_the_one_name_and_says_so_each_time(fresh: Environment) -> None:
    name = text()
    record = Record(text(b"pthread"), name, text(b"generic-cpu"))
    said = repair(record)
    assert name.value in (b"haswell", b"x86-64")
    assert name.value.decode() in said
    assert repair(record) == said
    assert len(name.value) <= 7


@on_linux_x86
@pytest.mark.parametrize("wish", ["znver3", "x86-64", "haswell"])
def test_repair_takes_the_name_from_the_environment(fresh: Environment, wish: str) -> None:
    fresh(ACS_CL_POCL_CPU=wish)
    name = text()
    assert "ACS_CL_POCL_CPU" in repair(Record(name))
    assert name.value.decode() == wish


@on_linux_x86
def test_repair_says_that_a_name_is_too_long_and_takes_its_own(fresh: Environment) -> None:
    fresh(ACS_CL_POCL_CPU="skylake-avx512")
    name = text()
    assert "no name of 1 to 7 characters" in repair(Record(name))
    assert name.value in (b"haswell", b"x86-64")


def _two() -> Record:
    return Record(text(), text())


def _none() -> Record:
    return Record(text(b"skylake"))


def _other_platform() -> Record:
    record = Record(text())
    record.platform.name = "Intel(R) OpenCL"
    return record


def _known_cpu() -> Record:
    record = Record(text())
    record.version = "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-skylake"
    return record


def _bad_address() -> Record:
    record = Record(text())
    record.int_ptr = 8
    return record


@on_linux_x86
@pytest.mark.parametrize("make", [_two, _none, _other_platform, _known_cpu, _bad_address])
def test_repair_leaves_everything_else_alone(fresh: Environment, make: Any) -> None:
    record = make()
    before = [string.value for string in record.strings]
    assert repair(record) == ""
    assert [string.value for string in record.strings] == before


@on_linux_x86
def test_repair_stops_at_the_next_device_of_the_platform(fresh: Environment) -> None:
    name, of_the_next = text(), text()
    record = Record(name, of_the_next)
    following = SimpleNamespace(int_ptr=record.int_ptr + 8 * 45)
    record.platform.get_devices = lambda: [record, following]
    assert repair(record) != ""
    assert of_the_next.value == b"generic"


@on_linux_x86
@pytest.mark.parametrize("wish", [None, "", " ", "off", "OFF"])
def test_nothing_is_repaired_that_was_not_asked_for(fresh: Environment, wish: str | None) -> None:
    fresh(ACS_CL_POCL_CPU=wish)
    name = text()
    assert repair(Record(name)) == ""
    assert name.value == b"generic"


@on_linux_x86
def test_repair_never_writes_to_read_only_memory(fresh: Environment, tmp_path: Any) -> None:
    file = tmp_path / "constants"
    file.write_bytes(b"generic\0" * 512)
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    number = ctypes.c_int
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, number, number, number, ctypes.c_long)
    with open(file, "rb") as source:
        page = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE, source.fileno(), 0)
    try:
        assert repair(Record(page)) == ""
        assert ctypes.string_at(page, 8) == b"generic\0"
    finally:
        libc.munmap(ctypes.c_void_p(page), 4096)


REFUSED = """
import acs_cl as acs
with acs.Runtime(device="Portable Computing Language") as rt:
    rt.build("kernel void k(global int *x) { x[0] = 1; }")
    print("built")
"""


BENCHMARK = [sys.executable, "-m", "acs_cl.benchmarks"]


def test_a_driver_that_does_not_know_the_cpu_says_how_to_ask() -> None:
    device = next((one for one in devices.devices() if "-generic" in one.version), None)
    if device is None or device.platform.name != devices.POCL_PLATFORM:
        pytest.skip("PoCL knows this CPU, or there is no PoCL")
    environment = {**os.environ}
    for wish, word in (("", "ACS_CL_POCL_CPU=auto"), ("auto", "built")):
        environment["ACS_CL_POCL_CPU"] = wish
        done = subprocess.run(
            [sys.executable, "-c", REFUSED],
            env=environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert word in done.stdout + done.stderr
    done = subprocess.run(
        [*BENCHMARK, "run", "latency", "--quick", "--device", "Portable"],
        env={**environment, "ACS_CL_POCL_CPU": ""},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "ACS_CL_POCL_CPU=auto" in done.stderr, "what PyOpenCL alone builds says so, too"
    assert "Traceback" not in done.stderr


BUILDS_ON_A_QUEUE = """
import pyopencl as cl
import acs_cl as acs
from acs_cl import devices
device = next(one for one in devices.devices() if "-generic" in one.version)
queue = acs.Queue(cl.Context([device]))
cl.Program(queue.context, "kernel void k(global int *x) { x[0] = 1; }").build()
"""


@pytest.mark.parametrize(
    "command",
    [["-m", "acs_cl", "doctor"], ["-m", "acs_cl", "doctor", "--fresh"], ["-c", BUILDS_ON_A_QUEUE]],
    ids=["doctor", "doctor --fresh", "queue"],
)
def test_whatever_comes_first_says_how_to_ask(command: list[str]) -> None:
    """Another process, with the repair, may have measured the device before."""
    there = devices.devices()
    if not any("-generic" in one.version for one in there):
        pytest.skip("PoCL knows this CPU, or there is no PoCL")
    if "-c" in command and sys.version_info < (3, 11):
        pytest.skip("exceptions take no notes")
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "ACS_CL_POCL_CPU": ""},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 1 or len(there) > 1
    assert "Set the environment variable ACS_CL_POCL_CPU=auto" in done.stdout + done.stderr


def test_repair_never_raises(fresh: Environment) -> None:
    assert repair(None) == ""
    assert repair(SimpleNamespace(platform=SimpleNamespace(name=devices.POCL_PLATFORM))) == ""


# }}}
