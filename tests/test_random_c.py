"""Odd forms of OpenCL C at random: inference misses nothing, rewritten forms leave the same bytes.

`ACS_CL_FUZZ=n` asks for n kernels, and for all forms.
"""

from __future__ import annotations

import os
from collections import Counter

from random_c.launches import FORMS_OF, Pool, Runner, missed_by_inference

FUZZ = int(os.environ.get("ACS_CL_FUZZ", "0"))
FEW = 3
"""Kernels of a pool: a driver takes long to build them."""


def test_inference_misses_nothing_that_odd_forms_touch() -> None:
    counts: Counter[str] = Counter()
    for seed in range(1, 2 + FUZZ // FEW):
        assert not missed_by_inference(Pool(seed, FEW), counts)
    assert counts["launches"] > 2 * counts["kernels"] >= 2 * FEW
    assert counts["writes: a part"] > counts["writes: all"]
    assert counts["reads: a part"] > counts["reads: all"]


def test_odd_forms_leave_the_bytes_that_the_oracle_says() -> None:
    forms = FORMS_OF if FUZZ else ("infer", "when", "view")
    runner = Runner(forms=forms)
    try:
        for seed in range(1, 2 + FUZZ // FEW):
            runner.pool(Pool(-seed, FEW, 3))
    finally:
        runner.close()
    assert not runner.wrong
    counts = runner.counts
    assert counts["launches infer"] == counts["launches view"] > 1.5 * counts["kernels"]
    assert counts["refused infer"] == counts["refused view"] == 0
