"""Report the progress of a long measurement."""

from __future__ import annotations

from acs_cl.host.progress import Progress

say = Progress()
"""Gets the present step, and the share that is done. An empty text ends it."""
