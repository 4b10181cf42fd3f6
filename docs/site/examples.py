"""Shows the examples in docstrings as code: each run of `>>>` lines becomes a block of its own."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Fences examples before a docstring is rendered as Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the examples of one object."""
        if obj.docstring:
            obj.docstring.value = re.sub(
                r"^>>> .+(?:\n.+)*",
                lambda found: f"```pycon\n{found[0]}\n```",
                obj.docstring.value,
                flags=re.MULTILINE,
            )
