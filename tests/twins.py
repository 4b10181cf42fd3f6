"""What there is twice, in Python and in the native core: each test of it runs on both."""

from __future__ import annotations

from typing import Any

import pytest

from acs_cl import core
from acs_cl.footprints import ReplayHazards
from acs_cl.hazards import Hazards

needs_core = pytest.mark.skipif(not core.NATIVE, reason=f"no native core: {core.WHY}")

_NATIVE: Any = pytest.param(getattr(core.native, "Hazards", None), marks=needs_core, id="native")

on_both = pytest.mark.parametrize("twin", [pytest.param(Hazards, id="python"), _NATIVE])
"""Hazards."""

on_both_replaying = pytest.mark.parametrize(
    "twin", [pytest.param(ReplayHazards, id="python"), _NATIVE]
)
"""Hazards that know footprints."""
