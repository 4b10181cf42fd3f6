"""A helper process that never ends, as some compilers do, or one that is behind the program."""

from __future__ import annotations

import os
import time
from pathlib import Path

from acs_cl.host.isolated import Order


def main(order: Order) -> None:
    """Take until the program has ended if `ends` is there to be written, else very long. `begun`
    gets the process's number first."""
    if "begun" in order:
        Path(order["begun"]).write_text(f"{os.getpid()}\n")
    program = os.getppid()
    while os.getppid() == program or "ends" not in order:
        time.sleep(0.01)
    Path(order["ends"]).touch()
