"""Random programs of random kernels: one result, with inference and without; nothing is missed.

`ACS_CL_FUZZ=n` asks for n programs; `random_batches.py` does the same as a tool, in processes of
their own and with a report.
"""

from __future__ import annotations

import os

from random_launches import PROGRAMS, Runner

FUZZ = int(os.environ.get("ACS_CL_FUZZ", "0"))


def test_random_kernels_do_what_the_oracle_says_and_inference_misses_nothing() -> None:
    runner = Runner()
    try:
        for seed in range(1, 1 + max(2, FUZZ // PROGRAMS)):
            runner.pool(seed, PROGRAMS)
    finally:
        runner.close()
    counts = runner.counts
    assert counts["launches checked"] == counts["launches"] > 5 * counts["programs"]
    assert counts["edges touched"] <= counts["edges inferred"] < counts["edges whole"]
    assert counts["launches with fewer bytes"] > counts["launches"] // 2
