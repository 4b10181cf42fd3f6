"""The probe: its record, its cache, its choices, a real measurement, and the commands on top."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import pyopencl as cl
import pytest
from conftest import Environment

import acs_cl as acs
from acs_cl import core, devices
from acs_cl._version import __version__
from acs_cl.devices import probe
from acs_cl.devices.probe import choice, facts, overlap, policies, store
from acs_cl.devices.probe.record import Gain, Probe, Suited
from acs_cl.emu.reference.lanes import Lanes
from acs_cl.errors import DeviceError
from acs_cl.host.intervals import in_flight
from acs_cl.records import Placing
from acs_cl.tools import cli, doctor

posix_only = pytest.mark.skipif(os.name != "posix", reason="file modes are a POSIX matter")


@pytest.fixture(scope="module")
def device() -> cl.Device:
    if not devices.devices():
        pytest.skip("no OpenCL device on this machine")
    return devices.choose()


class Measured(NamedTuple):
    """A measurement, and how long it had a processor."""

    probe: Probe
    seconds: float


@pytest.fixture(scope="module")
def measurement(device: cl.Device) -> Measured:
    """With time for all of it, however busy the machine is."""
    began = process_time()
    return Measured(probe.measure(device, budget_s=300.0), process_time() - began)


@pytest.fixture(scope="module")
def measured(measurement: Measured) -> Probe:
    return measurement.probe


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, environment: Environment) -> Path:
    environment(ACS_CL_CACHE=str(tmp_path / "cache"))
    return tmp_path / "cache"


def some_probe(**changes: Any) -> Probe:
    """A probe as it would come from a device with two in-order queues that overlap."""
    plain = Probe(
        device="Some Platform / some device",
        driver="1.0",
        kind="GPU",
        compute_units=8,
        memory_model="none",
        may_poll=True,
        may_poll_note="",
        svm="coarse",
        command_buffers=False,
        sub_buffer_align_bytes=128,
        measured=True,
        kernel_us=50.0,
        out_of_order_accepted=True,
        out_of_order_gain=1.0,
        out_of_order_slab_gain=1.0,
        lane_gains=gains(1.0, 1.9, 2.0),
        lane_slab_gains=gains(1.0, 1.9, 2.0),
    )
    return plain._replace(**changes)


def gains(*values: float) -> tuple[Gain, ...]:
    return tuple(Gain(lanes, value) for lanes, value in zip(overlap.LANES, values, strict=False))


# {{{ the record


def test_a_probe_survives_json(measured: Probe) -> None:
    for one in (measured, some_probe(notes=("a note",)), probe.assume(devices.choose())):
        assert Probe.from_json(json.loads(json.dumps(one.to_json()))) == one


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lanes", "4"),
        ("lanes", 0),
        ("lanes", True),
        ("backend", "magic"),
        ("memory", "paper"),
        ("launch_us", "fast"),
        ("launch_us", float("nan")),
        ("lane_gains", [{"lanes": 1}]),
        ("lane_gains", [{"lanes": 1, "gain": None}]),
        ("lane_gains", 3),
        ("notes", [1]),
        ("notes", "text"),
        ("unheard_of", 1),
    ],
)
def test_a_broken_document_is_no_probe(field: str, value: object) -> None:
    document = {**some_probe().to_json(), field: value}
    with pytest.raises(ValueError):  # noqa: PT011
        Probe.from_json(document)


def test_a_document_with_a_field_missing_is_no_probe() -> None:
    document = some_probe().to_json()
    del document["lanes"]
    others: list[object] = [document, [], None, "probe"]
    for broken in others:
        with pytest.raises(ValueError, match="not the fields"):
            Probe.from_json(broken)


# }}}

# {{{ the cache


def test_what_is_saved_is_loaded_and_only_for_its_key() -> None:
    assert store.load("one") is None
    assert store.save("one", some_probe())
    assert store.load("one") == some_probe()
    assert store.load("two") is None


def test_another_pyopencl_measures_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    store.save("one", some_probe())
    monkeypatch.setattr(cl, "VERSION_TEXT", "1999.1")
    assert store.load("one") is None


def test_the_key_names_driver_units_and_acs_cl(device: cl.Device) -> None:
    key = devices.key(device)
    for part in (device.driver_version.strip(), f"{device.max_compute_units} units", __version__):
        assert part in key


@posix_only
def test_the_cache_is_readable_by_its_user_only(cache: Path) -> None:
    os.umask(os.umask(0o022))
    store.save("one", some_probe())
    (file,) = (cache / "probe").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE((cache / "probe").stat().st_mode) == 0o700


@posix_only
def test_a_file_that_others_may_write_is_not_believed(cache: Path) -> None:
    store.save("one", some_probe())
    (file,) = (cache / "probe").iterdir()
    file.chmod(0o666)
    assert store.load("one") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"null", b"[]", b'{"format": 1}', b"\xff\xfe\x00", b"[" * 100_000],
)
def test_a_corrupted_file_is_not_believed_and_is_replaced(cache: Path, content: bytes) -> None:
    store.save("one", some_probe())
    (file,) = (cache / "probe").iterdir()
    file.write_bytes(content)
    assert store.load("one") is None
    assert store.save("one", some_probe())
    assert store.load("one") == some_probe()
    assert list((cache / "probe").iterdir()) == [file], "no scratch file is left"


def test_the_cache_can_be_switched_off(environment: Environment) -> None:
    environment(ACS_CL_CACHE="off")
    assert not store.save("one", some_probe())
    assert store.load("one") is None


def test_a_folder_that_cannot_be_written_only_means_no_cache(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write_text("a file where the folder should be")
    assert not store.save("one", some_probe())
    assert store.load("one") is None


@pytest.fixture
def measured_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Probe]], None]:
    """Have a function measure devices, for a test."""
    return partial(monkeypatch.setattr, probe, "measure")


def test_probe_measures_once_then_reads(
    device: cl.Device, measured: Probe, measured_by: Callable[[Callable[..., Probe]], None]
) -> None:
    asked = []

    def measure(_device: cl.Device, *, budget_s: float, say: probe.Say) -> Probe:
        asked.append(budget_s)
        return measured._replace(settled=True)

    measured_by(measure)
    assert probe.quick(device) is None
    first = probe.probe(device)
    assert probe.probe(device) == first == probe.quick(device)
    assert len(asked) == 1
    probe.probe(device, fresh=True)
    assert len(asked) == 2


def test_a_doubtful_measurement_is_not_kept(
    device: cl.Device, measured_by: Callable[[Callable[..., Probe]], None]
) -> None:
    measured_by(lambda *_, **__: some_probe(settled=False))
    assert not probe.probe(device).settled
    assert probe.quick(device) is None


@pytest.fixture
def contexts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What contexts were asked for; none can be made."""
    found: list[object] = []

    def refuse(*given: object, **_: object) -> None:
        found.append(given)
        raise cl.RuntimeError("clCreateContext failed: OUT_OF_HOST_MEMORY")

    monkeypatch.setattr(cl, "Context", refuse)
    return found


def test_quick_and_assume_touch_nothing_of_the_device(
    device: cl.Device, contexts: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a build")

    monkeypatch.setattr(facts, "build", refuse)
    assert probe.quick(device) is None
    assumed = probe.assume(device)
    assert not assumed.measured
    assert not contexts
    assert assumed.launch_us is None
    assert "nothing was measured" in assumed.sentence


# }}}

# {{{ the choice


@pytest.mark.parametrize(
    ("changes", "backend", "lanes", "memory"),
    [
        # NVIDIA-like: the single queue is accepted and does nothing.
        (
            {"lane_gains": gains(1, 2, 4, 6, 6.1), "lane_slab_gains": gains(1, 2, 4, 5.9, 6)},
            *("lanes", 8, "svm"),
        ),
        # AMD-like: it is refused.
        ({"out_of_order_accepted": False, "out_of_order_gain": None}, "lanes", 2, "svm"),
        # PoCL-like: both overlap.
        ({"out_of_order_gain": 1.95, "out_of_order_slab_gain": 1.9}, "out_of_order", 2, "svm"),
        # Both overlap, the single queue clearly less.
        ({"out_of_order_gain": 1.4, "out_of_order_slab_gain": 1.4}, "lanes", 2, "svm"),
        # Slabs serialise.
        ({"lane_slab_gains": gains(1, 1, 1)}, "lanes", 2, "buffers"),
        ({"svm": "none", "lane_slab_gains": ()}, "lanes", 2, "buffers"),
        ({"lane_slab_gains": ()}, "lanes", 2, "buffers"),
        # One compute unit, or nothing measured at all.
        ({"lane_gains": gains(1, 1.01, 0.99)}, "serial", 1, "svm"),
        ({"lane_gains": (), "out_of_order_gain": None}, "serial", 1, "svm"),
    ],
)
def test_the_choice_follows_the_figures(
    changes: dict[str, Any], backend: str, lanes: int, memory: str
) -> None:
    # "lanes 2" of 1.9 and 2.0: the smallest count within 5 % of the best.
    decided = choice.decide(some_probe(**changes))
    assert (decided.backend, decided.lanes, decided.memory) == (backend, lanes, memory)
    assert decided.sentence.startswith(f"auto chooses {backend}")
    assert decided.sentence.endswith(".")


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ((), ("tail", "least")),
        ((("disjoint", "reuse", 1.04), ("same", "reuse", 0.4)), ("tail", "least")),
        ((("disjoint", "reuse", 1.06), ("disjoint", "always", 1.2)), ("disjoint", "always")),
    ],
)
def test_lanes_are_taken_by_what_was_clearly_faster(
    figures: tuple[tuple[str, str, float], ...], expected: tuple[str, str], device: cl.Device
) -> None:
    suited = tuple(Suited(*one) for one in figures)
    found = choice.decide(some_probe(lane_policies=suited))
    assert (found.lane_after, found.lane_new) == expected
    store.save(devices.key(device), found)
    with acs.Runtime(device, backend="lanes") as rt:
        assert rt.engine.plan.placing[:2] == expected
        why = rt.stats()["why"]
    assert f"lanes are taken by '{expected[0]}', '{expected[1]}'" in why
    assert all(f"{after} {new} {gain:.2f}x" in why for after, new, gain in figures)
    with acs.Runtime(device, backend="lanes", lane_after="same") as rt:
        assert rt.engine.plan.placing[:2] == ("same", "least")
        assert "lanes are taken" not in rt.stats()["why"]


@pytest.mark.parametrize("policy", [("tail", "least"), *policies.POLICIES])
@pytest.mark.parametrize("lanes", [1, 2, 8])
def test_policies_are_measured_on_the_lanes_that_the_core_takes(
    policy: policies.Policy, lanes: int
) -> None:
    upstream = policies.branching()
    model = Lanes(lanes, lambda _: False, Placing(*policy))
    expected = [
        model.submit(number, [one + 1 for one in above]).lane
        for number, above in enumerate(upstream, 1)
    ]
    assert policies.lanes_of(upstream, lanes, policy) == expected
    assert len(upstream) == 32
    assert {len(above) for above in upstream} == {0, 1, 4}


@pytest.mark.parametrize(
    ("name", "kind", "units", "backend", "lanes", "memory"),
    [
        ("Portable Computing Language / x", "CPU", 2, "out_of_order", 1, "svm"),
        ("Portable Computing Language / x", "CPU", 1, "serial", 1, "svm"),
        ("Intel(R) OpenCL / x", "CPU", 8, "out_of_order", 1, "svm"),
        ("NVIDIA CUDA / x", "GPU", 132, "lanes", 8, "svm"),
        ("AMD Accelerated Parallel Processing / x", "GPU", 60, "lanes", 8, "buffers"),
        ("Oclgrind / x", "CPU", 1, "serial", 1, "svm"),
    ],
)
def test_the_guess_goes_by_the_driver(
    name: str, kind: str, units: int, backend: str, lanes: int, memory: str
) -> None:
    guessed = choice.guess(some_probe(device=name, kind=kind, compute_units=units))
    assert (guessed.backend, guessed.lanes, guessed.memory) == (backend, lanes, memory)


# }}}

# {{{ the measurement


def test_surprising_times_are_recognised() -> None:
    base = {("buffers", 1): 100.0}
    assert overlap.expected({**base, ("buffers", 0): 50.0, ("buffers", 2): 52.0}, 2)
    assert overlap.expected({**base, ("buffers", 0): 100.0, ("buffers", 2): 99.0}, 1)
    assert not overlap.expected({**base, ("buffers", 0): 100.0, ("buffers", 2): 99.0}, 2)
    assert not overlap.expected({**base, ("buffers", 0): 100.0, ("buffers", 2): 50.0}, 2)
    assert not overlap.expected({**base, ("buffers", 0): 20.0, ("buffers", 2): 20.0}, 2)


def test_in_flight_counts_open_intervals() -> None:
    assert in_flight([(0, 10), (10, 20)]) == 1
    assert in_flight([(0, 10), (0, 10), (100, 110), (100, 110)]) == 2
    assert in_flight([(0, 10), (2, 4)]) == pytest.approx(1.2)
    assert in_flight([]) == 0


@pytest.mark.alone
def test_a_real_measurement_is_short_and_complete(device: cl.Device, measurement: Measured) -> None:
    measured, seconds = measurement
    assert measured.measured
    assert seconds < 8 * (device.max_compute_units if measured.kind == "CPU" else 1)
    assert measured.compute_units == device.max_compute_units
    assert [gain.lanes for gain in measured.lane_gains] == list(overlap.LANES)
    assert measured.launch_us
    assert measured.launch_us > 0
    assert measured.read_us
    assert measured.read_p99_us
    assert measured.read_p99_us >= measured.read_us
    assert measured.sentence.startswith(f"auto chooses {measured.backend}")
    best = choice.enough(measured.lane_gains)
    several = best is not None and best.lanes > 1
    assert [one[:2] for one in measured.lane_policies] == list(policies.POLICIES) * several
    assert measured.may_poll == bool(device.type & cl.device_type.GPU)


@pytest.mark.alone
def test_two_compute_units_of_pocl_overlap(device: cl.Device, measured: Probe) -> None:
    if device.platform.name.strip() != devices.POCL_PLATFORM or device.max_compute_units < 2:
        pytest.skip("this device is not PoCL on two or more compute units")
    if not measured.settled:
        pytest.skip(f"the machine is busy: {'; '.join(measured.notes)}")
    assert measured.backend in ("out_of_order", "lanes")
    assert measured.memory_model == "c11"
    assert measured.argument_info


def test_no_time_leaves_figures_out_and_says_so(device: cl.Device) -> None:
    hasty = probe.measure(device, budget_s=0.0)
    assert hasty.notes
    assert not hasty.settled
    assert hasty.sentence


def test_a_driver_error_is_a_device_error(device: cl.Device, contexts: list[object]) -> None:
    with pytest.raises(DeviceError, match="cannot be measured"):
        probe.measure(device)
    assert contexts


# }}}

# {{{ the commands


@pytest.fixture
def probed(measured: Probe, device: cl.Device) -> None:
    for there in devices.devices():
        store.save(devices.key(there), measured)


def test_doctor_prints_every_device_and_the_sentence(
    probed: None, measured: Probe, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor"]) == 0
    printed = capsys.readouterr().out
    for device in devices.devices():
        assert devices.full_name(device) in printed
    assert measured.sentence in printed
    assert f"core: {core.ABOUT}" in printed


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "auto has a scheduler there, too"),
        ({"memory_model": "none"}, "auto has no scheduler there: the device orders nothing"),
        ({"memory": "buffers"}, "auto has no scheduler there: arrays are buffers"),
    ],
    ids=["scheduler", "no order", "buffers"],
)
def test_doctor_says_whether_auto_has_a_scheduler(
    changes: dict[str, str], says: str, measured: Probe, device: cl.Device,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    if not device.svm_capabilities:
        pytest.skip("no shared virtual memory, so no scheduler")
    known = measured._replace(**{"memory_model": "c11", "memory": "svm", "svm": "fine", **changes})
    for there in devices.devices():
        store.save(devices.key(there), known)
    assert cli.main(["doctor"]) == 0
    assert says in capsys.readouterr().out
    with acs.Runtime(device) as rt:
        assert (rt.plan.scheduler == "mix") is (not changes)


def test_doctor_json_is_one_document(
    probed: None, measured: Probe, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor", "--json", "--device", "0"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["acs_cl"] == __version__
    assert len(report["devices"]) == 1
    assert Probe.from_json(report["devices"][0]["probe"]) == measured


def test_doctor_measures_afresh_when_asked(
    probed: None, measured: Probe, measured_by: Callable[[Callable[..., Probe]], None]
) -> None:
    fresh = measured._replace(sentence="fresh")
    measured_by(lambda *_, **__: fresh)
    assert doctor.examine()["devices"][0]["probe"]["sentence"] == measured.sentence
    assert doctor.examine(fresh=True)["devices"][0]["probe"]["sentence"] == "fresh"


def test_doctor_reports_a_device_that_fails_beside_the_others(
    device: cl.Device,
    measured_by: Callable[[Callable[..., Probe]], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> Probe:
        raise DeviceError("it is broken")

    measured_by(fail)
    assert cli.main(["doctor"]) == 1
    assert "it is broken" in capsys.readouterr().out


def test_doctor_without_a_device_says_what_to_install(
    platforms: Callable[[type], None], capsys: pytest.CaptureFixture[str]
) -> None:
    platforms(list)
    assert cli.main(["doctor"]) == 1
    assert "install" in capsys.readouterr().out
    assert cli.main(["doctor", "--json"]) == 1
    assert "install" in json.loads(capsys.readouterr().out)["error"]


def test_an_unknown_device_is_a_message_without_a_traceback(
    device: cl.Device, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor", "--device", "no such thing"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("acs-cl doctor: no device is called")
    assert "Traceback" not in captured.err


def test_demo_gets_its_options(imported_as: Callable[[str, object], None]) -> None:
    got: list[Any] = []

    class Demo:
        @staticmethod
        def main(args: Any) -> int:
            got.append(args)
            return 3

    imported_as("acs_cl.benchmarks.demo", Demo)
    assert cli.main(["demo", "--quick", "--out", "a.png", "--backend", "lanes"]) == 3
    (args,) = got
    assert (args.quick, args.out, args.backend, args.device) == (True, "a.png", "lanes", None)


def test_the_module_is_the_command() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "acs_cl", "--version"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        cwd=Path(cli.__file__).parents[1],
    )
    assert said.stdout.strip() == f"acs-cl {__version__}"


# }}}


def test_a_device_that_orders_nothing_has_no_scheduler(cache: Path, device: cl.Device) -> None:
    """Groups of a launch must see each other's writes: such a device is left to its queues."""
    store.save(
        devices.key(device), probe.assume(device)._replace(memory_model="none", measured=True)
    )
    with pytest.raises(acs.UsageError, match="orders nothing between the groups of a launch"):
        acs.Runtime(device, backend="device")
    with acs.Runtime(device) as rt:
        assert rt.plan.scheduler == "no"
