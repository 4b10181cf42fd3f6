"""A helper process that ends well if its priority is as much lower as the order says."""

from __future__ import annotations

import os

from acs_cl.host.isolated import Order


def main(order: Order) -> None:
    """Compare with the priority of the process that started it."""
    program = os.getpriority(os.PRIO_PROCESS, os.getppid())
    assert os.nice(0) == min(19, program + order["lower"])
