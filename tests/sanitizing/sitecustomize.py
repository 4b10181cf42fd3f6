"""Python imports this at its start, in programs that tests of `make sanitize` start."""

from __future__ import annotations

import sanitized  # noqa: F401
