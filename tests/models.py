"""What the core does and a model in Python does too: each test of it runs on both."""

from __future__ import annotations

from typing import Any

import pytest

from acs_cl import core
from acs_cl.emu.reference.footprints import ReplayHazards


def with_wide_nodes() -> Any:
    """The core's hazards, which let the neighbours of a span rest from the second one on."""
    made = core.native.Hazards()
    made.wide = 2
    return made


OF_CORE = [
    pytest.param(core.native.Hazards, id="core"),
    pytest.param(with_wide_nodes, id="core, wide"),
]
on_both = pytest.mark.parametrize("kind", [pytest.param(ReplayHazards, id="model"), *OF_CORE])
"""Hazards of both, which know footprints."""
on_core = pytest.mark.parametrize("kind", OF_CORE)
"""Hazards of the core."""
