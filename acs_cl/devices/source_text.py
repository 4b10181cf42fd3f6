"""The text of a source as the language sees it: continued lines, trigraphs, digraphs, comments.

In: text. Out: text to search. Pure. Invariant: a directive of the source is one of the result.
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
    """Replace each trigraph by what it means."""
    return TRIGRAPH.sub(lambda match: _MEANT[match[0][2]], text) if "??" in text else text


def bare(text: str) -> str:
    """Join continued lines, and leave out comments, what is in strings, and digraphs."""
    text = CONTINUED.sub("", text)
    text = _LEFT_OUT.sub(lambda match: '""' if match[0][0] in "\"'" else " ", text)
    return text.replace("%:", "#")
