"""Digests: the names of what is kept on disk.

In: text. Out: a digest in hexadecimal digits. `hashlib` loads OpenSSL, which takes longer than all
else that the start of a program asks of us; the module below it that has this one digest does not.
"""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # another interpreter
    from hashlib import blake2b


def digest(text: str, length: int = 64) -> str:
    """The first `length` digits of the digest of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()[:length]
