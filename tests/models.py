"""What the core does and a model in Python does too: each test of it runs on both."""

from __future__ import annotations

import pytest

from acs_cl import core
from acs_cl.emu.reference.footprints import ReplayHazards
from acs_cl.emu.reference.hazards import Hazards

on_both = pytest.mark.parametrize(
    "kind", [pytest.param(Hazards, id="model"), pytest.param(core.native.Hazards, id="core")]
)
"""Hazards."""

on_both_replaying = pytest.mark.parametrize(
    "kind", [pytest.param(ReplayHazards, id="model"), pytest.param(core.native.Hazards, id="core")]
)
"""Hazards that know footprints."""
