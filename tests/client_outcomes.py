"""How the tests of a package ended on its own queue and on ours, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

BAD = frozenset(("failed", "crashed", "timed out", "not run"))


def side_by_side(plain: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, object]:
    """Counts of both sides, the tests that ended differently, and those that passed on neither."""
    tests = sorted({*plain, *ours})
    return {
        "plain": dict(Counter(plain.values())),
        "acs.Queue": dict(Counter(ours.values())),
        "different": {
            test: [plain.get(test, "missing"), ours.get(test, "missing")]
            for test in tests
            if plain.get(test) != ours.get(test)
        },
        "passed on neither": [
            test for test in tests if plain.get(test) in BAD and ours.get(test) in BAD
        ],
    }
