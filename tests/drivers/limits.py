"""Known limits of drivers: what fails there on plain PyOpenCL queues too, and why.

Each is a driver, a part of the names of the tests that meet it, and the cause. What is listed here
was seen in a program without us; anything else that fails is ours to mend.
"""

from __future__ import annotations

LIMITS: tuple[tuple[str, str, str], ...] = (
    (
        "Rusticl",
        "test_independent_kernels_overlap_where_the_backend_can",
        "profiling gives all kernels of a queue in order the same interval, so that they seem to "
        "overlap; four kernels on one plain queue with profiling show it",
    ),
)
