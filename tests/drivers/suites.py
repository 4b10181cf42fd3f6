"""What is run on each driver: suites of pytest files, in a long and a short form.

The short form is for `make test`, the long one for `make drivers`. A suite whose files are
not there is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parent.parent


class Suite(NamedTuple):
    """Files, what pytest is told besides, and the environment."""

    files: tuple[str, ...]
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}

    @property
    def there(self) -> bool:
        """Whether the files are."""
        return all((TESTS / file).exists() for file in self.files)


LONG = {
    "conformance": Suite(("test_conformance.py", "test_program_variables.py")),
    "acs.Queue": Suite(
        (
            "test_queue.py",
            "test_bypass.py",
            "test_tracked_kernels.py",
            "test_tracked_calls.py",
            "test_tracked_transfers.py",
        )
    ),
    "random programs": Suite(
        ("test_random_programs.py", "test_random_launches.py"),
        environment={"ACS_CL_FUZZ": "2000"},
    ),
    "traps": Suite(("test_traps.py",), ("-k", "no_trap_catches")),
}

SHORT = {
    "conformance": Suite(("test_conformance.py",), ("-k", "out_of_order-eager or device-eager")),
    "acs.Queue": Suite(
        ("test_queue.py",),
        ("-k", "(array or arrays or from_the_cache or random) and out_of_order-eager"),
        environment={"ACS_CL_EVERY": "1"},  # a sample of them may be too few to say anything
    ),
    "random programs": Suite(
        ("test_random_programs.py",),
        ("-k", "test_random_programs_give_what_numpy_gives and not device"),
        environment={"ACS_CL_FUZZ": "90"},
    ),
}
