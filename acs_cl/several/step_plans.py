"""Plans of steps: they say where the launches of a step run that a program repeats.

Input: launches in program order, how long they take, and where their data is. Output: for each
launch of a repeated step its device, or that it is spread over all. A launch alone does not tell:
it may gain nothing by itself, or cost others more than it gains. So the launches are watched until
a step comes again. Then the step is tried on a model: at home, placed by the policy, and with some
of its launches spread. A better way is taken once it would have gained what moving the data costs.

The model knows little of the host and of the links. So the clock decides in the end: what is no
faster than the step was at home is taken back. Of ways that are nearly as fast on the model, the
one is kept that is fastest by the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..launch.commands import KernelCommand, TransferCommand
from ..records import NamedTuple
from .device_parts import LEAST_US, DevicePart
from .kernel_times import Times
from .known_launches import Known
from .placed_runs import Chosen
from .policies import STAYS_US
from .steps import LIMITS, MOST, Plan, Step, Steps

SPREAD = -1
"""Stands for all devices, each with a part of the launch."""

ON_EACH = -2
"""Stands for all devices, each with the whole launch. So none has to wait for what another one
writes."""

TRIES = 3
"""How many ways are tried for a step before the best one is kept, or it stays at home for good."""

REST_FACTOR = 8
"""After launches that did not repeat, so many times as many go by before others are watched."""

MOST_KINDS = 24
"""In steps with more launches to spread, none of them is left whole by itself."""


class Trial(NamedTuple):
    """A way to run a step, and how long it takes on the model."""

    chosen: Sequence[Chosen]
    copies: int
    """The number of copies between devices, when the data is where the step left it."""
    first_us: float
    """How long it takes with moving the data."""
    steady_us: float
    """When the data is where the step left it."""


Try = Callable[[Sequence[Known], Mapping[int, Sequence[DevicePart]], bool], Trial]
"""(launches, parts of those that are spread, "all stay where their data is") -> how that went."""

Parts = Mapping[Known, Sequence[DevicePart]]
"""{a launch that is spread: its parts; none if each device makes all of it}."""


class StepPlans:
    """Knows the steps of a program. `watches` is called when launches begin to be watched, and
    `moves` when some are to run elsewhere."""

    def __init__(
        self,
        times: Times,
        attempt: Try,
        watches: Callable[[], None],
        ask_links: Callable[[], None],
        allocating_us: Callable[[Plan], float],
        moves: Callable[[], None],
    ) -> None:
        self._times, self._attempt, self._ask_links = times, attempt, ask_links
        self._allocating_us, self._moves = allocating_us, moves
        self.limits = LIMITS
        self._watches = watches
        self._watched: Steps[Known] | None = None
        self._seen = 0
        """Launches since watching began, with those before an array was freed."""
        self._transfers: dict[object, Known] = {}
        """Transfers that were watched."""
        self._by_first: dict[Known, Step] = {}
        """{the launch with which it begins: a step about which something is to be decided}."""
        self._is_idle = False
        """Whether nothing was under way at some moment since a step began."""
        self._last_us = self._paused_us = 0.0
        """When the last launch came, and how long there was none after waits for all of them: the
        program may do something else then, which tells nothing about its steps."""
        self._plan: Plan = {}
        self._members: dict[Known, bool] = {}
        """{launch of a step that was found: whether the step is kept in a way that was tried}."""
        self._rests = MOST
        self._rested = self._rests
        """How many launches go by before others are watched, and how many have."""

    @property
    def is_watching(self) -> bool:
        """Whether each launch has to come here."""
        return self._watched is not None

    @property
    def is_deciding(self) -> bool:
        """Whether a step may soon run elsewhere, or is looked for."""
        return self.is_watching or bool(self._by_first)

    def may_cut(self, known: Known) -> bool:
        """Tell whether it matters in which parts a launch can run: each one of a step may be
        spread, because its data is or so that it will be."""
        return known.parts is None and (
            self.is_watching or (self._took_us(known) >= LEAST_US and known not in self._plan)
        )

    def device_of(self, known: Known, now_us: float, waited_us: float | None) -> int | None:
        """Return the device of the next launch, `SPREAD` or `ON_EACH`. None: it has none yet.
        `waited_us`: if nothing is under way, when the program went on after its last wait."""
        if not isinstance(known.command, KernelCommand):
            if self._watched is not None and known.command.name != "read":
                self._watched.note(self._same(known))
            return None
        if self._by_first:
            if waited_us is not None and waited_us >= self._last_us:
                self._is_idle, self._paused_us = True, self._paused_us + now_us - waited_us
            self._last_us = now_us
            if (step := self._by_first.get(known)) is not None:
                verdict = step.passed(now_us - self._paused_us, self._is_idle)
                self._is_idle = False
                if verdict:
                    self._follow(known, step, verdict)
        found = self._plan.get(known)
        if found is None or self._watched is not None:
            self._watch(known, known not in self._members)
        return found

    def _took_us(self, known: Known) -> float:
        """Return how long such launches take; 0: not known."""
        return self._times.slowest_us(known.key) or 0.0

    def _same(self, known: Known) -> Known | None:
        """Return what stands for all transfers of the same bytes; None for other commands."""
        if not isinstance(known.command, TransferCommand):
            return None
        return self._transfers.setdefault((known.command.name, known.access), known)

    def forget(self, base: int) -> None:
        """Forget a base that was freed, with the steps that touch it."""
        for known in [known for known in self._members if base in known.bases]:
            del self._members[known]
            self._plan.pop(known, None)
        for first, step in list(self._by_first.items()):
            if any(base in known.bases for known in step.launches):
                del self._by_first[first]
        if self._watched is not None:
            self._watched = Steps()
        self._transfers.clear()

    def _watch(self, known: Known, is_new: bool) -> None:
        """Watch for a step, from the first launch on that is long enough to matter."""
        is_long = is_new and self._took_us(known) >= STAYS_US
        if self._watched is None:
            self._rested += 1
            if not is_long or self._rested < self._rests:
                return
            self._watched, self._transfers, self._seen = Steps(), {}, 0
            self._watches()
        elif is_long and (found := self._watched.repeated(known)) is not None:
            self._watched, self._rests = None, MOST
            self._rested = MOST
            self._decide(known, found)
            return
        elif self._seen >= MOST:
            self._watched, self._rested = None, 0
            self._rests *= REST_FACTOR
            return
        self._seen += 1
        self._watched.note(known)

    def _decide(self, first: Known, launches: Sequence[Known]) -> None:
        """Have a step stay at home, until another way pays that seems faster. Steps that are tried
        and share launches with it are given up. A step that is kept holds for what they share."""
        self._ask_links()
        trial = self._tried(launches, {}, True)
        home = self._plan_of(launches, {}, trial)
        for begins, other in list(self._by_first.items()):
            if home.keys() & other.home.keys():
                self._end(begins, other)
        is_fixed = any(self._members.get(known) for known in home)
        self._members |= dict.fromkeys(launches, is_fixed)
        if is_fixed:
            self._plan = home | self._plan
            return
        step = Step(launches, home, trial.steady_us, self.limits)
        self._plan |= home
        if self._improves(step):
            self._by_first[first] = step

    def _follow(self, first: Known, step: Step, verdict: str) -> None:
        """Do what a step has decided."""
        if verdict == "try":
            self._put(step.launches, step.way)
            return
        if verdict == "worse":
            self._put(step.launches, step.best or step.home)
        if not self._improves(step):
            self._end(first, step)

    def _end(self, first: Known, step: Step) -> None:
        """Keep the best way of a step that was tried, if one was better than home."""
        self._put(step.launches, step.best or step.home)
        if step.best:
            self._members |= dict.fromkeys(step.launches, True)
        del self._by_first[first]

    def _put(self, launches: Iterable[Known], plan: Plan) -> None:
        """Have the launches of a step run by a plan; those without a place in it have none. What a
        step that is kept says of them holds."""
        self._moves()
        for known in launches:
            if not self._members.get(known):
                self._plan.pop(known, None)
        self._plan |= {one: place for one, place in plan.items() if not self._members.get(one)}

    def _improves(self, step: Step) -> bool:
        """Tell whether a way seems faster than home, or about as fast as the best one, and have the
        step consider it."""
        if len(step.tried) >= TRIES:
            return False
        ways, limits = self._ways(step.launches), self.limits
        most_us = limits.gains * step.model_us
        if step.best:
            most_us = min(most_us, limits.near * ways[0][1].steady_us)
        for spread, trial in ways:
            way = self._plan_of(step.launches, spread, trial)
            if trial.steady_us > most_us or way in step.tried:
                continue
            moving_us = trial.first_us - trial.steady_us + self._allocating_us(way)
            if not step.best:
                step.consider(way, int(moving_us / (step.model_us - trial.steady_us)))
                return True
            if moving_us <= limits.moves * trial.steady_us:
                step.consider(way, 0)
                return True
        return False

    def _ways(self, launches: Sequence[Known]) -> list[tuple[Parts, Trial]]:
        """Return ways to run a step, the fastest first: whole, or with the long launches spread, or
        all. In the best of these each device also makes what is left, if that can be repeated. Then
        one launch after the other is left whole, or made by each device instead, and stays so if
        the step is faster then."""
        spread: Parts = {known: known.parts for known in launches if known.parts}
        long = {known: parts for known, parts in spread.items() if self._took_us(known) >= LEAST_US}
        ways = [(one, self._tried(launches, one, False)) for one in ({}, long, spread)]
        best = min(ways, key=_steady_us)
        repeated = {one: () for one in launches if one.repeats and one not in best[0]}
        if best[0] and repeated:
            ways.append((both := {**best[0], **repeated}, self._tried(launches, both, False)))
            best = min(best, ways[-1], key=_steady_us)
        for known in best[0] if 1 < len(best[0]) <= MOST_KINDS else ():
            others = {one: parts for one, parts in best[0].items() if one is not known}
            some: list[Parts] = [others]
            if known.repeats and best[0][known]:
                some.append({**others, known: ()})
            ways += [(one, self._tried(launches, one, False)) for one in some]
            best = min(best, *ways[-len(some) :], key=_steady_us)
        return sorted(ways, key=_steady_us)

    def _tried(self, launches: Sequence[Known], spread: Parts, is_at_home: bool) -> Trial:
        """Try a step on the model. At home the core makes short launches, else Python all."""
        parts = {turn: spread[one] for turn, one in enumerate(launches) if one in spread}
        trial = self._attempt(launches, parts, is_at_home)
        made = [one for one in trial.chosen if not is_at_home or one.took_us >= STAYS_US]
        in_parts = sum(one.turn in parts for one in made)
        whole_us, part_us, *_ = self.limits
        host_us = whole_us * (len(made) - in_parts) + part_us * (in_parts + trial.copies)
        return trial._replace(steady_us=max(trial.steady_us, host_us))

    @staticmethod
    def _plan_of(launches: Sequence[Known], spread: Parts, trial: Trial) -> Plan:
        """Return where the longer launches run; short ones follow their data."""
        plan: Plan = {one: SPREAD if parts else ON_EACH for one, parts in spread.items()}
        for one in trial.chosen:
            if one.took_us >= STAYS_US:
                plan.setdefault(launches[one.turn], one.device)
        return plan


def _steady_us(way: tuple[Parts, Trial]) -> float:
    return way[1].steady_us
