"""Dividing: decides whether a launch is spread over all devices.

Input: a launch that can run in parts, and where its data is. Output: whether it does. If its data
would have to be moved first, that has to pay: gains add up until they exceed what moving costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..records import Span
from .known import Known
from .model import Model, key_of, needed
from .placement import Links, Owed
from .spreading import LEAST_US
from .spreading import Part as PartOf
from .times import Key, Times

ENOUGH = 0.9
"""A launch whose parts take longer than this share of its own time stays whole."""


class Dividing:
    """Knows which launches were worth spreading. `ask_links` measures links before they matter."""

    def __init__(
        self, model: Model, links: Links, times: Times, ask_links: Callable[[], None]
    ) -> None:
        self._model, self._links, self._times = model, links, times
        self._ask_links = ask_links
        self._owed = Owed()
        self._indivisible: set[Key | None] = set()
        """Kinds of launches that take as long in parts."""
        self._apart: set[int] = set()
        """Bases that spread launches have touched: others that do may find their data apart."""
        self.moves = 0
        """How often data was moved apart so that a launch could be spread."""

    def may_pay(self, known: Known) -> bool:
        """Tell whether it has to be computed whether spreading pays. Cheap, for each launch."""
        whole_us = self._times.slowest_us(known.key) or 0.0
        if whole_us < LEAST_US or known.key in self._indivisible:
            return False
        if not self._apart.isdisjoint(known.bases):
            return True
        back_us = self._goes_back_us(known.access.writes)
        return self._owed.is_due(_like(known), self._gains_us(whole_us, back_us), self.moves)

    def pays(self, known: Known) -> bool:
        """Tell whether a launch that can be cut is spread now."""
        parts = known.parts or ()
        self._ask_links()
        whole_us = self._times.slowest_us(known.key) or 0.0
        part_us = self._part_us(parts, whole_us)
        if part_us > ENOUGH * whole_us:
            self._indivisible.add(known.key)
            return False
        back_us = self._goes_back_us(known.access.writes)
        coherence = self._model.coherence
        moves_us = [
            coherence.moves_us(needed(*part), device, self._links)
            for device, part in enumerate(parts)
        ]
        left_us = whole_us - max(moves_us) - part_us - back_us
        if left_us > 0:
            self._owed.stayed(_like(known), left_us)
        else:
            gains_us = self._gains_us(whole_us, back_us)
            if not self._owed.pays(_like(known), gains_us, sum(moves_us)):
                return False
            self.moves += 1
        self._apart |= known.bases
        return True

    def forget(self, base: int) -> None:
        """Forget a base that was freed."""
        self._apart.discard(base)

    def _part_us(self, parts: Sequence[PartOf], whole_us: float) -> float:
        """Return how long the longest part takes. Until parts were timed, each is assumed to take
        its share. A launch that does not fill a device takes as long in parts."""
        share_us = whole_us / len(parts)
        return max(self._times.slowest_us(key_of(one.command)) or share_us for one in parts)

    def _goes_back_us(self, writes: Sequence[Span]) -> float:
        """Return how long it would take to bring together again what the parts of a launch write,
        where the launches that read it were on one device before."""
        if not self._model.pulled:
            return 0.0
        took_us, away = 0.0, 1 - 1 / len(self._links)
        for base in {span.base for span in writes} & self._model.pulled.keys():
            to, nbytes = self._model.pulled[base]
            source = 0 if to else 1
            took_us += self._links[source][to].took_us(int(nbytes * away))
        return took_us

    def _gains_us(self, whole_us: float, back_us: float) -> float:
        """Return how much time a device would save if a launch was in parts. Nothing where all
        devices have about as much to do."""
        work_us = self._model.work_us
        gap_us = max(work_us) - min(work_us)
        gains_us = whole_us * (1 - 1 / len(work_us)) if gap_us > whole_us else 0.0
        return max(0.0, gains_us - back_us)


def _like(known: Known) -> object:
    """Return the kind of a launch whose gains are added up."""
    return known.key, known.bases
