"""Choose backend, lanes and memory by figures, and say why.

Input: a probe without a choice. Output: the same with ``backend``, ``lanes``, ``memory`` and
``sentence`` filled in. Invariant: pure; equal figures give equal choices and equal sentences.
"""

from __future__ import annotations

from collections.abc import Sequence

from acs_cl.devices import POCL_PLATFORM
from acs_cl.devices.probe.facts import AMD, NVIDIA
from acs_cl.devices.probe.record import Gain, Probe
from acs_cl.records import Placing

# One queue is the simplest, but only good if it overlaps clearly and is as fast as lanes. Lanes are
# worth their events at a slightly lower gain.
OUT_OF_ORDER_GAIN = 1.3
OUT_OF_ORDER_OF_LANES = 0.95
LANES_GAIN = 1.15
ENOUGH = 0.95  # of the best number of lanes: fewer queues cost less
SLABS_OF_BUFFERS = 0.9  # slabs make views cheap, and may cost this much of the overlap
ASSUMED_LANES = 8
POLICY_GAIN = 1.05  # least gain of another policy of lanes: below, runs differ more by chance


def decide(probe: Probe) -> Probe:
    """Choose by measured figures."""
    best = enough(probe.lane_gains)
    lanes_gain = best.gain if best else 0.0
    single_gain = probe.out_of_order_gain or 0.0
    if single_gain >= OUT_OF_ORDER_GAIN and single_gain >= OUT_OF_ORDER_OF_LANES * lanes_gain:
        backend = "out_of_order"
    elif best and lanes_gain >= LANES_GAIN:
        backend = "lanes"
    else:
        backend = "serial"
    lanes = best.lanes if best and lanes_gain >= LANES_GAIN else 1
    memory, about_memory = _memory(probe, backend, lanes)
    suited = max(probe.lane_policies, key=lambda one: one.gain, default=None)
    if suited is None or suited.gain < POLICY_GAIN:
        after, new = Placing()[:2]
    else:
        after, new = suited[:2]
    doubt = "" if probe.settled else " (a disturbed measurement, not kept)"
    return probe._replace(
        backend=backend,
        lanes=lanes,
        lane_after=after,
        lane_new=new,
        memory=memory,
        sentence=f"{_about_backend(probe, backend, best)}; {about_memory}{doubt}.",
    )


def about_policy(probe: Probe) -> str:
    """Explain the policy of lanes."""
    how = f"lanes are taken by {probe.lane_after!r}, {probe.lane_new!r}"
    if not probe.lane_policies:
        return f"{how}, since no others were measured"
    tried = ", ".join(f"{one.after} {one.new} {one.gain:.2f}x" for one in probe.lane_policies)
    return f"{how}: branches ran by {tried} of the default"


def guess(probe: Probe) -> Probe:
    """Choose without measurements, by general knowledge of the drivers.

    PoCL and Intel's CPU runtime overlap kernels in one out-of-order queue, given two compute units
    or more. NVIDIA's driver accepts such a queue but does not overlap in it, and AMD's refuses it.
    Both overlap several in-order queues. An unknown driver gets one in-order queue.
    """
    platform = probe.device.split(" / ")[0]
    cpu = probe.kind == "CPU" and (platform == POCL_PLATFORM or platform.startswith("Intel"))
    backend, lanes, why = "serial", 1, "this driver is not known"
    if cpu and probe.compute_units > 1:
        backend, why = "out_of_order", "such drivers overlap kernels in one out-of-order queue"
    elif cpu:
        why = "there is one compute unit, so nothing can overlap"
    elif NVIDIA in platform or platform == AMD:
        backend, lanes, why = "lanes", ASSUMED_LANES, "such drivers overlap in-order queues only"
    memory = "svm" if probe.svm != "none" and platform != AMD else "buffers"
    named = f"{backend} with {lanes} in-order queues" if backend == "lanes" else backend
    where = "SVM slabs" if memory == "svm" else "separate buffers"
    return probe._replace(
        backend=backend,
        lanes=lanes,
        memory=memory,
        sentence=f"auto assumes {named}: {why} (nothing was measured yet); memory in {where}.",
    )


def enough(gains: Sequence[Gain]) -> Gain | None:
    """Return the smallest number of lanes that comes within 5 % of the best."""
    if not gains:
        return None
    bar = ENOUGH * max(gain.gain for gain in gains)
    return min(gain for gain in gains if gain.gain >= bar)


def _memory(probe: Probe, backend: str, lanes: int) -> tuple[str, str]:
    if probe.svm == "none":
        return "buffers", "memory in separate buffers, since there is no SVM"
    if probe.device.startswith(f"{AMD} / "):
        return "buffers", "memory in separate buffers, since this driver orders by shared arguments"
    if backend == "out_of_order":
        apart, slabs = probe.out_of_order_gain, probe.out_of_order_slab_gain
    elif backend == "lanes":
        apart, slabs = _at(probe.lane_gains, lanes), _at(probe.lane_slab_gains, lanes)
    else:
        return "svm", "memory in SVM slabs"
    if apart is None or slabs is None:
        return "buffers", "memory in separate buffers, since slabs were not measured"
    if slabs < SLABS_OF_BUFFERS * apart:
        return "buffers", (
            f"memory in separate buffers, since kernels on parts of one SVM slab lose overlap "
            f"({slabs:.2f}x)"
        )
    return "svm", f"memory in SVM slabs, which keep the overlap ({slabs:.2f}x)"


def _at(gains: Sequence[Gain], lanes: int) -> float | None:
    return next((gain.gain for gain in gains if gain.lanes == lanes), None)


def _about_backend(probe: Probe, backend: str, best: Gain | None) -> str:
    if probe.out_of_order_accepted is False:
        single = "an out-of-order queue is refused"
    elif probe.out_of_order_gain is None:
        single = "an out-of-order queue was not measured"
    else:
        single = f"{probe.out_of_order_gain:.2f}x in one out-of-order queue"
    queues = "in-order queues were not measured"
    if best and best.lanes > 1:
        queues = f"{best.gain:.2f}x on {best.lanes} in-order queues"
    elif best:
        most = max(gain.gain for gain in probe.lane_gains)
        queues = f"{most:.2f}x at most on several in-order queues"
    kernels = f"kernels of {probe.kernel_us:.0f} us" if probe.kernel_us else "kernels"
    if backend == "out_of_order":
        return f"auto chooses out_of_order: independent {kernels} run {single} ({queues})"
    if backend == "lanes" and best:
        return f"auto chooses lanes with {best.lanes} queues: {kernels} run {queues} ({single})"
    units = f"{probe.compute_units} compute unit{'s' * (probe.compute_units != 1)}"
    return f"auto chooses serial: {kernels} hardly overlap on {units} ({single}, {queues})"
