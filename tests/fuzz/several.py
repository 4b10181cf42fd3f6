"""Random programs on several devices: each launch at a random place, beside NumPy and a model.

In: seeds. Out: counts, or an error. Where there are fewer devices, contexts stand for more. The
model of the coherence says of each copy whether it was needed; one that was not is an error.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyopencl as cl

import acs_cl as acs
from acs_cl.emu.reference.coherence import Bytes
from acs_cl.records import Span, interval
from acs_cl.several.engine import SeveralEngine
from acs_cl.several.known_launches import Group, Known
from acs_cl.several.model import MOST_ROWS, Coherence, Model, Parcel, Piece
from acs_cl.several.placed_runs import RunStep
from acs_cl.several.policies import Links
from acs_cl.several.step_plans import ON_EACH, SPREAD
from fuzz.kernels import SOURCE
from fuzz.machine import AcsMachine
from fuzz.oracle import NumpyMachine
from fuzz.steps import NAMES, compare, run

CONFIGURATIONS: list[tuple[int, dict[str, Any]]] = [
    (2, {"backend": "out_of_order", "memory": "svm"}),
    (2, {"backend": "lanes", "memory": "buffers"}),
    (3, {"backend": "lanes", "memory": "svm"}),
    (3, {"backend": "serial", "memory": "buffers"}),
    (2, {"backend": "out_of_order", "memory": "svm", "issue": "ready_first"}),
    (3, {"backend": "out_of_order", "memory": "svm", "window": 3}),
    (2, {"backend": "out_of_order", "memory": "svm", "spread": True}),
    (3, {"backend": "lanes", "memory": "buffers", "spread": True}),
    (2, {"backend": "lanes", "memory": "svm", "spread": None}),
    (3, {"backend": "out_of_order", "memory": "buffers", "spread": None}),
]
"""Devices, and options of the runtime. Where `spread` is None, a plan is drawn for each launch."""

STEPS, REPEATS = 25, 5
GRAPHS = [*NAMES, *["graph", "replay", "replay", "replay", "replay", "update", "swap"] * 9]
"""Steps of programs with many replays."""


def engine_of(runtime: acs.Runtime) -> SeveralEngine:
    """The engine, of several devices."""
    engine = runtime.engine
    assert isinstance(engine, SeveralEngine)
    return engine


class Looked(Coherence):
    """Coherence beside its model: what is copied was missing, and nothing else was."""

    def __init__(self, devices: int) -> None:
        super().__init__()
        self.model = Bytes({})
        self.devices = devices
        self.noted: list[Parcel] = []
        """Copies that are noted already when they are made."""
        self.together = 0
        """Launches that the core made together."""
        self.twice = 0
        """Bytes that were copied to a device that had them, since nobody had written them."""

    def _grow(self, base: int, end: int) -> None:
        line = self.model.valid.setdefault(base, [])
        line += [set() for _ in range(end - len(line))]

    def missing(self, span: Span, device: int) -> list[Piece]:
        found = super().missing(span, device)
        self._grow(span.base, span.end)
        bytes_found = [at for piece in found for at in range(piece.start, piece.end)]
        assert span.rows > MOST_ROWS or bytes_found == self.model.missing(span, device)
        for piece in found:
            for at in (piece.start, piece.end - 1):
                mask = sum(1 << one for one in self.model.valid[span.base][at])
                assert mask == piece.devices, (piece, at)
        return found

    def bring(
        self, spans: Sequence[Span], device: int, links: Links, prefetch: int
    ) -> list[Parcel]:
        for span in spans:
            if span.base > 0:
                self.missing(span, device)
        found = super().bring(spans, device, links, prefetch)
        for base, start, end, source, target in found:
            self._copies(base, start, end, target)
            self.model.moved(base, start, end, source, target)
        self.noted += found
        return found

    def _copies(self, base: int, start: int, end: int, target: int) -> None:
        self._grow(base, end)
        self.twice += sum(target in one for one in self.model.valid[base][start:end])

    def copied(self, parcel: Parcel) -> None:
        """A copy is made. Those of a replay are noted at its end."""
        if parcel in self.noted:
            self.noted.remove(parcel)
        else:
            self._copies(*parcel[:3], parcel.target)

    def moved(self, piece: Piece, device: int) -> None:
        super().moved(piece, device)
        sources = set(range(self.devices))
        for one in self.model.valid[piece.base][piece.start : piece.end]:
            sources &= one or sources
        assert sources
        self.model.moved(piece.base, piece.start, piece.end, min(sources), device)
        assert not self.model.copied_again

    def written(self, span: Span, device: int) -> None:
        super().written(span, device)
        self._grow(span.base, span.end)
        self.model.written(span, device)

    def stepped(self, step: RunStep) -> None:
        """A launch of a replay was made, with the copies before it. The engine notes what all of
        them did at the end."""
        for base, start, end, source, target in step.copies:
            self.model.moved(base, start, end, source, target)
        for span in step.chosen.access.writes:
            if span.base > 0:
                self._grow(span.base, span.end)
                self.model.written(span, step.chosen.device)

    def makes(self, group: Group, copies: Sequence[Parcel]) -> None:
        """The core makes launches together, behind copies."""
        self.together += len(group.launches)
        for base, start, end, source, target in copies:
            self.model.moved(base, start, end, source, target)
        for one in group.launches:
            for span in one.spans:
                if span.base > 0 and span.rows <= MOST_ROWS:
                    self._grow(span.base, span.end)
                    assert not self.model.missing(span, one.device), (span, one.device)
        for one in group.launches:
            for span in one.access.writes:
                self._grow(span.base, span.end)
                self.model.written(span, one.device)
        if group.is_on_each:
            self._is_everywhere(group.launches[0].access.writes)

    def put(self, piece: Piece) -> None:
        super().put(piece)
        for one in self.model.valid[piece.base][piece.start : piece.end]:
            assert sum(1 << device for device in one) == piece.devices, piece

    def written_by_each(self, model: Model, spans: Sequence[Span]) -> None:
        """Each device has written these bytes."""
        self._is_everywhere(spans)
        Model.written_by_each(model, spans)

    def _is_everywhere(self, spans: Sequence[Span]) -> None:
        for span in spans:
            self._grow(span.base, span.end)
            valid = [set(range(self.devices)) for _ in range(span.nbytes)]
            self.model.valid[span.base][span.start : span.end] = valid

    def settle(self, base: int, nbytes: int) -> bool:
        is_settled = super().settle(base, nbytes)
        if is_settled:
            self._grow(base, nbytes)
            self.model.written(interval(base, 0, nbytes), 0)
        return is_settled

    def forget(self, base: int) -> None:
        super().forget(base)
        self.model.valid.pop(base, None)


def at_random(seed: int) -> Callable[..., int]:
    """A policy that draws devices."""
    chance = random.Random(seed)
    return lambda task, states, links, now_us: chance.randrange(len(states))


def team(device: cl.Device, many: int) -> list[cl.Device]:
    """So many devices of a device's kind: all that its platform has, each as often as it takes."""
    real = [one for one in device.platform.get_devices() if one.type == device.type]
    return [real[place % len(real)] for place in range(many)]


def drawn(seed: int, many: int) -> Callable[..., int | None]:
    """Plans that are drawn: one device, all with a part each, or all with the whole launch."""
    chance = random.Random(f"plan {seed}")

    def device_of(known: Known, now_us: float, waited_us: float | None) -> int | None:
        ways: list[int | None] = [None, chance.randrange(many)]
        ways += [SPREAD] * bool(known.parts) + [ON_EACH] * known.repeats
        return chance.choice(ways)

    return device_of


class Ways:
    """A runtime for each configuration, made when it is needed."""

    def __init__(self, device: cl.Device) -> None:
        self._device = device
        self._made: dict[int, tuple[acs.Runtime, acs.Program]] = {}

    def one(self, seed: int) -> Counter[str]:
        """The program of a seed; every third one has failures in it."""
        which = seed % len(CONFIGURATIONS)
        many, options = CONFIGURATIONS[which]
        if which not in self._made:
            runtime = acs.Runtime(devices=team(self._device, many), **options)
            self._made[which] = runtime, runtime.build(SOURCE)
        runtime, program = self._made[which]
        engine = engine_of(runtime)
        looked = engine.model.coherence = Looked(many)
        engine.copies.told, engine.stepped = looked.copied, looked.stepped
        engine.makes = looked.makes
        engine.model.written_by_each = partial(looked.written_by_each, engine.model)  # type: ignore[method-assign]
        if "spread" in options and options["spread"] is None:
            engine.step_plans.may_cut = lambda known: known.parts is None  # type: ignore[method-assign]
            engine.step_plans.device_of = drawn(seed, many)  # type: ignore[method-assign]
        engine.placer.policy = at_random(seed)
        engine.places_after = 0, 0
        engine.times.first = 1
        before, chance = counted(engine), random.Random(f"several {seed}")
        names = GRAPHS if seed // len(CONFIGURATIONS) % 2 else NAMES
        steps = [(chance.choice(names), chance.randbytes(11)) for _ in range(STEPS)]
        if chance.randrange(2):  # the core makes launches together that come again
            steps = steps[: STEPS // REPEATS] * REPEATS
        failing = seed // len(CONFIGURATIONS) % 3 == 2
        expected = NumpyMachine(failing)
        run(steps, expected)
        got = AcsMachine(runtime, program, failing=failing)
        try:
            run(steps, got)
        finally:
            got.let_go()
        compare(steps, expected, got)
        with contextlib.suppress(acs.PoisonedError):
            runtime.finish()
        found = counted(engine)
        found.subtract(before)
        found["bytes copied twice"] = looked.twice
        found["made together"] = looked.together
        assert not looked.twice
        return found

    def close(self) -> None:
        """Let all runtimes go."""
        for runtime, _ in self._made.values():
            runtime.close()


def counted(engine: SeveralEngine) -> Counter[str]:
    """Count what an engine has done."""
    copies = [link for row in engine.copies.moved for link in row]
    return Counter(
        {
            "launches": sum(engine.placed_on),
            "parts": engine.parts,
            "made on each device": engine.repeated,
            "launches of placed graphs": engine.replayed,
            "copies": sum(many for many, _ in copies),
            "copied bytes": sum(nbytes for _, nbytes in copies),
        }
    )


def configuration_of(seed: int) -> str:
    """What a seed is run on."""
    many, options = CONFIGURATIONS[seed % len(CONFIGURATIONS)]
    return f"{many} devices, {options}"
