"""The text of a source without continued lines, trigraphs, digraphs and comments.

Input: text. Output: text to search. Pure. Invariant: each directive of the source is in the result.
"""

from __future__ import annotations

import re

CONTINUED = re.compile(r"\\[ \t\v\f]*\r?\n")
TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
_MEANT = dict(zip("=/'()!<>-", "#\\^[]|{}~", strict=True))
_LEFT_OUT = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)


def without_trigraphs(text: str) -> str:
    """Replace each trigraph by its character."""
    return TRIGRAPH.sub(lambda match: _MEANT[match[0][2]], text) if "??" in text else text


def bare(text: str) -> str:
    """Join continued lines, and leave out comments, contents of strings, and digraphs."""
    text = CONTINUED.sub("", text)
    text = _LEFT_OUT.sub(lambda match: '""' if match[0][0] in "\"'" else " ", text)
    return text.replace("%:", "#")
