"""Counts that are not allowed where at most 32 are, and what their errors say.

Whoever makes the launch, Python or the core, says the same.
"""

from __future__ import annotations

WRONG_COUNTS = [
    ("u4", 33, None, "is 33, expected 0 to 32"),
    ("u4", 2**32 - 1, (8,), "is 4294967295, expected 0 to 32"),
    ("i4", -1, None, "is -1, expected 0 to 32"),
    ("u4", 12, (8,), "is 12, expected a multiple of local size 8"),
]
"""Type, count, local size, and what the error says."""
