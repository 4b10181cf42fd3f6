"""Digests: the names of entries on disk.

Input: text. Output: a digest in hexadecimal digits. `hashlib` loads OpenSSL, which takes longer
than the rest of the library's start. The module below it that has this one digest does not.
"""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # another interpreter
    from hashlib import blake2b


def digest(text: str, length: int = 64) -> str:
    """Return the first `length` digits of the digest of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()[:length]
