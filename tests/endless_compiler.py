"""A helper process that never ends, as some compilers do."""

from __future__ import annotations

import time

from acs_cl.host.isolated import Order


def main(order: Order) -> int:
    """Take very long."""
    time.sleep(3600)
    return len(order)
