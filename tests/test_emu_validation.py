"""The emulator beside reality: what is predicted from what, and that a run of it says both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import undisturbed

from acs_cl import DeviceError, UsageError, devices
from acs_cl.benchmarks import validate
from acs_cl.benchmarks.figures import validation_tables
from acs_cl.benchmarks.validation import comparison, model, runs, scheduler_costs
from acs_cl.benchmarks.validation.costs import Costs, machine_of, middle
from acs_cl.benchmarks.validation.host import Host, opened, told
from acs_cl.benchmarks.validation.model import (
    Taken,
    bare,
    machine_for,
    marked,
    modelled,
    own,
    predicted,
    queued,
)
from acs_cl.benchmarks.validation.queue_edges import LINKS, Times, chains, edges
from acs_cl.benchmarks.validation.samples import (
    DOUBLINGS,
    FEW,
    SENT,
    WAITS,
    _queued,
    _tiles,
    _wide,
)
from acs_cl.benchmarks.validation.scheduler_costs import SchedulerCosts
from acs_cl.benchmarks.workloads import catalogue, chosen
from acs_cl.emu.trace import Entry, Trace

COSTS = Costs(
    kind="CPU",
    units=2,
    shared=0,
    launch_ns={"serial": 1_000, "lanes": 2_000, "device": 500},
    argument_ns={"serial": 100, "lanes": 100, "device": 10},
    cold_ns={"serial": 7, "lanes": 8, "device": 9},
    own_ns=0,
    event_ns=900,
    sync_ns=5_060,
    epoch_ns=7_000,
    epoch_wait_ns=6_000,
    epoch_read_ns=4_000,
    edges=[(50, 10), (10_050, 110), (20_050, -90)],
    scheduler=SchedulerCosts(1, 8, 30, 0, 200, 0, 1_000, 1_100, {}),
)


def kernels(count: int, groups: int = 1) -> Trace:
    """Independent ones of 100 us."""
    entries = [
        Entry(number, "k", groups=groups, items=1, total_ns=100_000)
        for number in range(1, count + 1)
    ]
    return Trace("k", entries, "device", "upstream")


def test_a_prediction_is_made_of_measured_costs_and_kernel_times() -> None:
    """Serial: a launch, four kernels with what lies between, a wait. Lanes: two at a time."""
    serial, lanes = (
        predicted(kernels(4), machine_of(COSTS, name, 300), name, 0) for name in ("serial", "lanes")
    )
    assert serial * 1e6 == 1_000 + 4 * 100_000 + 3 * 300 + 5_000
    assert lanes * 1e6 == 2_000 + 2 * 100_000 + 2_000 + 5_000


def test_the_scheduler_is_that_which_was_measured() -> None:
    """Records, an epoch, then tiles of four groups each; a wait for the epoch, not for a launch. A
    read behind it costs what it was measured to cost there."""
    where = machine_of(COSTS, "device", 300)
    assert (where.scheduler.launched, where.scheduler.groups, where.scheduler.group) == (4, 1, 1)
    found = predicted(kernels(2), where, "device", 0)
    tiles = 100_000 * 2  # one behind the other, since a launch of one task has one group
    assert found * 1e6 <= 2 * 500 + 7_000 + tiles + 200 + 6_000
    read = Entry(3, "read", "read", upstream=(2,), total_ns=1_000)
    trace = kernels(2)
    behind = trace._replace(entries=[*trace.entries, read])
    assert predicted(behind, where, "device", 0) > found
    shorter = bare(trace, COSTS.empty_ns)
    assert [one.total_ns for one in shorter.entries] == [99_950, 99_950]
    assert bare(behind, COSTS.empty_ns).entries[2].total_ns == 1_000


def test_sending_holds_the_program_where_it_was_seen_to() -> None:
    for share, holds in ((20, False), (990, True)):
        where = machine_of(COSTS._replace(epoch_holds=share), "device", 0)
        assert where.scheduler.holds == holds


class Timed:
    """A side whose kernels take so many nanoseconds a round, and the first of them more."""

    def __init__(self, round_ns: float, spoiled: int = 0) -> None:
        self.round_s, self.spoiled, self.longest = round_ns * 1e-9, spoiled, 0

    def once(self, kind: str, items: int, rounds: int) -> float:
        self.longest = max(self.longest, rounds)
        self.spoiled -= 1
        return 20e-6 + rounds * self.round_s + 1e-3 * (self.spoiled >= 0 and rounds % 32 == 0)


@pytest.mark.parametrize("round_ns", [0.5, 2.0, 40.0, 100_000.0])
@pytest.mark.parametrize("spoiled", [0, 6])
def test_a_kernel_is_measured_however_short_its_rounds(round_ns: float, spoiled: int) -> None:
    """On a GPU a round takes 2 ns, on a CPU all its work-items do a round one after another; and
    what runs beside the first samples must not make a kernel look long."""
    sides: Any = {"ours": Timed(1.5 * round_ns), "alone": Timed(round_ns, spoiled)}
    assert scheduler_costs._slower(sides, "sums", 4096, 5) == 1500
    least = scheduler_costs.LEAST_S / 2 * 1e9
    assert sides["alone"].longest * round_ns >= least


def test_what_takes_no_time_cannot_be_measured() -> None:
    sides: Any = {"ours": Timed(1.0), "alone": Timed(0.0)}
    with pytest.raises(DeviceError, match="too short to be measured"):
        scheduler_costs._slower(sides, "sums", 4096, 5)


def test_kernels_are_marked_by_the_schedulers_that_have_them() -> None:
    """One in both may be cut, one that is only in that of its own size may not, others take a
    lane."""
    names = ("both", "sums", "image", "copy")
    entries = [Entry(n, name, groups=1, items=64, total_ns=9) for n, name in enumerate(names, 1)]
    entries[3] = Entry(4, "copy", "copy", total_ns=9)
    schedulers = [
        {"group": 256, "resident_groups": 264, "kernels": ("both",)},
        {"group": 64, "resident_groups": 2112, "kernels": ("both", "sums")},
    ]
    found = marked(Trace("four", entries), Taken(2, 1, {}, schedulers, 0.1), 256).entries
    assert [(one.whole_groups, one.on_lane) for one in found] == [(0, 0), (1, 0), (0, 1), (0, 0)]


def test_a_workload_has_as_many_groups_as_its_own_scheduler() -> None:
    costs = COSTS._replace(kind="GPU", units=132, scheduler=COSTS.scheduler._replace(group=256))
    own = [{"group": 256, "resident_groups": 264, "kernels": ("k",)}]
    trace, none = kernels(1), Taken(0, 0, {}, [], 0.0)
    where = machine_for(trace, costs, "device", Taken(1, 1, {}, own, 0.1)).scheduler
    assert (where.groups, where.launched) == (2, 2)
    assert machine_for(trace, costs, "device", none) == machine_of(costs, "device", 0)


def test_a_kernel_takes_in_a_queue_what_a_chain_of_kernels_as_long_does() -> None:
    """Between lengths that were measured in proportion. What is more than the profile has lies
    between kernels, in the mean of the workload's; what is less is in none of them."""
    assert [COSTS.edge_ns(ns) for ns in (0, 50, 5_050, 10_050, 15_050, 10**6)] == [
        10, 10, 60, 110, 10, -90,
    ]  # fmt: skip
    assert COSTS.empty_ns == 50
    lasting = (10_050, 20_050)
    entries = [Entry(n, "k", groups=1, items=1, total_ns=ns) for n, ns in enumerate(lasting, 1)]
    entries.append(Entry(3, "read", "read", total_ns=20_050))
    trace = Trace("three", entries)
    assert [one.total_ns for one in queued(trace, COSTS).entries] == [10_050, 19_960, 20_050]
    taken = Taken(0, 0, {}, [], 0.0)
    assert machine_for(trace, COSTS, "serial", taken).host.edge_ns == 110 // 2


def test_the_beginning_of_a_call_is_not_the_programs_own_time() -> None:
    """One that takes less makes good for one that takes more, up to where the program waits; more
    arguments than two are paid for by what they take on the backend."""
    times = (0, 1_300, 700, 1_200, 5_000, 700, 1_200)
    entries = [
        Entry(n, "k", groups=1, items=1, total_ns=9, segments=FEW, host_ns=ns)
        for n, ns in enumerate(times, 1)
    ]
    entries[6] = entries[6]._replace(waits=(5,), segments=FEW + 3)
    costs = COSTS._replace(own_ns=1_000)
    found = own(Trace("seven", entries), costs, "serial").entries
    assert [one.host_ns for one in found] == [7, 300, 0, 0, 3_900, 0, 200 + 300]
    assert own(Trace("seven", entries), costs, "device").entries[6].host_ns == 200 + 30


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with opened(devices.choose()) as found:
        yield found


def found(host: Host, name: str) -> runs.Measured:
    plan = runs.Plan(host.device, [], "tiny", 2, True)
    return runs.measured(plan, catalogue()[name], host)


def test_a_run_is_settled_when_nothing_waits_for_a_scheduler(host: Host) -> None:
    """Of four launches a step each kernel is looked at again after thirty-two of its launches."""
    taken = found(host, "vec").taken
    assert taken.tasks == 4
    assert runs.NOT_BUILT not in taken.on_lanes
    assert taken.epochs == 2  # two kernels are cut anew, two are not
    assert taken.busy_ms is None or 0 < taken.busy_ms < 1000


def test_a_recorded_step_has_times_waits_and_arguments(host: Host) -> None:
    run = found(host, "ant")
    entries = run.trace.entries
    reads = [one.number for one in entries if one.kind == "read"]
    waits = [one.waits for one in entries if one.waits]
    assert waits == [(number,) for number in reads if number < len(entries)]
    assert all(one.total_ns > 0 for one in entries)
    assert any(one.segments > FEW for one in entries)
    assert all(one.host_ns > 0 for one in entries[1:])
    assert {name: len(times) for name, times in run.real_ms.items()} == dict.fromkeys(
        comparison.POLICIES, 2
    )
    # what a timeline has for the beginnings of calls is most of it, and is not counted twice
    costs = COSTS._replace(**run.host)
    known = sum(one.host_ns for one in own(run.trace, costs, "serial").entries)
    slow = costs._replace(own_ns=10**9)
    least = sum(one.host_ns for one in own(run.trace, slow, "serial").entries)
    more = sum(max(0, one.segments - FEW) for one in entries)
    assert least == more * costs.argument_ns["serial"] + costs.cold_ns["serial"]
    assert least <= known < least + sum(one.host_ns for one in entries)
    both = [modelled(run.trace, one, run.taken)["model_ms"]["serial"] for one in (costs, slow)]
    assert both[0] >= both[1] > 0


def test_a_launch_and_a_wait_are_told_apart(host: Host) -> None:
    """No launch of a sample is among the first behind a wait, and all records of one are in one
    epoch."""

    def a_wait_takes_longer() -> None:
        samples = {name: [sampler() for _ in range(3)] for name, sampler in host.samplers().items()}
        costs = told(samples, [host.own()])
        assert set(costs) < set(Costs._fields)
        assert 0 < costs["own_ns"] < 1_000_000
        for name, taken in samples.items():
            few, wait = (sorted(one[what] for one in taken)[1] for what in ("few", "wait"))
            assert costs["launch_ns"][name] == round(few) < wait
        assert costs["epoch_tile_ps"] == costs["epoch_behind_ns"] == 0  # on a CPU
        assert costs["epoch_ns"] > costs["launch_ns"]["device"]
        assert 0 <= costs["epoch_holds"] < 1000

    undisturbed(a_wait_takes_longer)
    epochs = [_epochs_of_a_sample(host) for _ in range(3)]  # one more where the machine stood still
    assert min(epochs) == (5 + SENT) * (1 + WAITS) + DOUBLINGS, epochs
    hosts = [{"own_ns": ns, "launch_ns": {"serial": 2 * ns}} for ns in (10, 30, 90)]
    assert middle(hosts) == {"own_ns": 30, "launch_ns": {"serial": 60}}


def test_what_a_gpu_is_asked_besides_is_of_epochs_that_wait(host: Host) -> None:
    """Here of a CPU's: some milliseconds for one that lasts and ten behind it."""
    side = host._sides["device"]
    for _ in range(3):
        assert -1e8 < _queued(side) < 1e8
    assert side.rounds > 1
    assert 0 < _wide(side) < 1e8
    assert [_tiles({"group": 256, "resident_groups": n}) for n in (660, 66)] == [2048, 256]


def _epochs_of_a_sample(host: Host) -> int:
    told_by = host._sides["device"].runtime.stats
    before = told_by()["scheduler"]["epochs"]
    host.samplers()["device"]()
    return int(told_by()["scheduler"]["epochs"]) - before


def test_what_a_link_takes_is_that_of_the_longer_chain_more_than_of_the_shorter() -> None:
    """Medians of three samples of two lengths; a kernel may take less in a queue than its profile
    has."""
    more = LINKS[1] - LINKS[0]
    samples = [
        [Times(500, 500 + more * 30 + noise, 40 + noise), Times(500, 500 + more * 90, 80 + noise)]
        for noise in (0, -1, 5)
    ]
    assert edges(samples) == [(40, -10), (80, 10)]


def test_a_chain_without_profiles_lasts_as_long_as_its_links() -> None:
    """Of the longest links at least: what a queue adds is little beside them."""
    with chains(devices.choose()) as queue:

        def links_add_up() -> None:
            found = queue.sample()
            assert [one.lasts for one in found] == sorted(one.lasts for one in found)
            last = found[-1]
            assert last.long - last.short > 0.5 * last.lasts * (LINKS[1] - LINKS[0])

        undisturbed(links_add_up)


def test_cores_that_run_both_are_never_used_twice() -> None:
    """Eight kernels of two groups on two cores, and the program beside them."""
    trace = kernels(8, groups=2)
    where = machine_of(COSTS, "serial", 300)
    where = where._replace(host=where.host._replace(launch_ns=90_000))
    apart, shared = (predicted(trace, where, "serial", cores) for cores in (0, 2))
    assert apart < shared
    assert shared * 1e6 == (8 * 2 * 100_000 + 8 * 90_000) // 2


def test_errors_are_those_of_time_on_serial_and_of_speed_ups_beside_it() -> None:
    row = {
        "real_ms": {"serial": {"median": 2.0}},
        "model_ms": {"serial": 1.5},
        "real": {"lanes": 2.0, "device": 4.0},
        "model": {"lanes": 2.2, "device": 5.0},
    }
    assert [model.off(row, name) for name in comparison.POLICIES] == [
        pytest.approx(-0.25),
        pytest.approx(0.1),
        pytest.approx(0.25),
    ]
    found = model.errors({"one": row})
    assert found == {"serial": 0.25, "lanes": 0.1, "device": 0.25, "all": 0.25}


def test_each_backend_is_held_to_its_bar_by_itself() -> None:
    said = validation_tables._errors({"serial": 0.08, "lanes": 0.15, "device": 0.19, "all": 0.11})
    assert "| `serial` | 8.0% |" in said
    assert "| `lanes` | 15.0% |" in said
    assert "| `device` | **19.0%** (missed) |" in said
    assert "| all together, for comparison only | 11.0% |" in said


def test_the_command_measures_and_models(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "found.json"
    assert validate.main(["vec", "--preset", "tiny", "--quick", "--json", str(path)]) == 0
    document = json.loads(path.read_text(encoding="utf-8"))
    row = document["rows"]["vec"]
    assert set(row["real"]) == set(row["model"]) == {"serial", "lanes", "device"}
    assert row["real"]["serial"] == row["model"]["serial"] == 1
    assert all(row["model_ms"][name] > 0 for name in row["model_ms"])
    assert document["errors"] == model.errors(document["rows"])
    assert "A look with few samples" in capsys.readouterr().out


def test_a_run_that_has_no_time_says_what_it_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = COSTS.scheduler
    monkeypatch.setattr(comparison.scheduler_costs, "measured", lambda *of: costs)
    path = tmp_path / "found.json"
    words = ["static", "--preset", "tiny", "--quick", "--within", "0.001", "--json", str(path)]
    traces = tmp_path / "traces"
    assert validate.main([*words, "--traces", str(traces)]) == 0
    document = json.loads(path.read_text(encoding="utf-8"))
    assert list(document["rows"]) == ["nasnet"]
    assert document["left_out"] == ["amoebanet", "squeezenet", "randwire"]
    text = capsys.readouterr().out
    assert "Not measured for want of time: " in text
    assert "| time of a kernel smaller than the scheduler, of its own | 1.00x |" in text
    assert "| time of a larger one, of its own | 1.10x |" in text
    # the model alone says the same again, and something else of other costs
    words = ["--again", str(path), "--traces", str(traces), "--json", str(tmp_path / "again.json")]
    assert validate.main(words) == 0
    assert json.loads((tmp_path / "again.json").read_text(encoding="utf-8")) == document
    document["rows"]["nasnet"]["host"]["launch_ns"]["serial"] *= 99
    path.write_text(json.dumps(document), encoding="utf-8")
    assert validate.main(words) == 0
    other = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))["rows"]["nasnet"]
    assert other["model_ms"]["serial"] > document["rows"]["nasnet"]["model_ms"]["serial"]
    assert other["real_ms"] == document["rows"]["nasnet"]["real_ms"]
    capsys.readouterr()
    assert validate.main(words[:2]) == 1
    assert "--again needs --traces" in capsys.readouterr().err
    (tmp_path / "old.json").write_text('{"acs_cl_validation": 1}', encoding="utf-8")
    assert validate.main(["--again", str(tmp_path / "old.json"), "--traces", "."]) == 1
    assert (
        "old.json: not what this version measures: ValueError('version 1, not 2')"
        in capsys.readouterr().err
    )


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no workload or family is called 'nothing'"):
        chosen(["nothing"])
    assert {one.name for one in chosen(validate.FEW)} == set(validate.FEW)
    assert [one.name for one in chosen(["static"])] == [
        one.name for one in catalogue().values() if one.family == "static"
    ]
