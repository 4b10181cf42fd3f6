"""What the core does and a model in Python does too: each test of it runs on both."""

from __future__ import annotations

from typing import Any

import pytest

from acs_cl import core
from acs_cl.emu.reference.footprints import ReplayHazards
from acs_cl.emu.reference.hazards import Hazards


def with_wide_nodes() -> Any:
    """The core's hazards, which let the neighbours of a span rest from the second one on."""
    made = core.native.Hazards()
    made.wide = 2
    return made


on_both = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(Hazards, id="model"),
        pytest.param(core.native.Hazards, id="core"),
        pytest.param(with_wide_nodes, id="core, wide"),
    ],
)
"""Hazards."""

on_both_replaying = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(ReplayHazards, id="model"),
        pytest.param(core.native.Hazards, id="core"),
        pytest.param(with_wide_nodes, id="core, wide"),
    ],
)
"""Hazards that know footprints."""
