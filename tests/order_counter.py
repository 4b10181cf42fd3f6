"""A helper process that ends well if it has done as many orders before as the order says."""

from __future__ import annotations

from itertools import count

from acs_cl.host.isolated import Order

_orders = count()


def main(order: Order) -> None:
    """Compare with the number of orders before this one."""
    assert next(_orders) == order["before"]
