"""Tell what a long measurement is doing."""

from __future__ import annotations

from acs_cl.host.progress import Progress

say = Progress()
"""Hears what is done now, and which share of the whole is behind; an empty text ends that."""
