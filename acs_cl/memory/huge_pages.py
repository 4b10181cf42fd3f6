"""Huge pages: the system is asked for them where the host's processor computes in memory.

Input: where an allocation lies, before anything is in it. A kernel that walks through much memory
then waits less often until the processor has found where a page is, as NumPy's arrays do. Systems
that know no such request, or refuse it, keep the usual pages.
"""

from __future__ import annotations

import ctypes
import mmap

HUGE = 2 << 20
"""Bytes of a huge page, as most processors have them."""

LEAST = 2 * HUGE
"""Smaller allocations keep the usual pages. The first touch of a huge page fills all of it with
zeros, which takes as long as a start of a small program can spare."""


def whole_pages(address: int, nbytes: int) -> tuple[int, int]:
    """Return where the huge pages of an allocation begin, and their bytes. 0: it has none."""
    first, end = -(-address // HUGE) * HUGE, (address + nbytes) // HUGE * HUGE
    return (first, end - first) if nbytes > LEAST else (0, 0)


def ask_for_huge_pages(address: int, nbytes: int) -> None:
    """Ask for huge pages in an allocation, as far as the system has them."""
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    first, many = whole_pages(address, nbytes)
    if advice is not None and many:
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        advise(first, many, advice)
