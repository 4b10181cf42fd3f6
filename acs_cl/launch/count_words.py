"""Words for wrong counts of launches whose global size the device decides.

Input: the core's queues. Output: words, of which the core gives one to each such launch that it
makes. A kernel stores a count there that was not allowed.

Invariant: the host sees a word when its launch has ended, without a transfer. Where the device has
no such memory there are no words, and Python makes these launches, with a read behind each.
"""

from __future__ import annotations

import pyopencl as cl

from .. import core
from ..devices.probe.facts import svm
from .decision import WIDTH

WORDS = 64
"""How many are made at one time."""

MOST_WORDS = 4096


def has_words(device: cl.Device) -> bool:
    """Tell whether the host sees memory of the device without a transfer."""
    return svm(device) in ("fine", "system")


def words_for(queues: core.native.Queues, context: cl.Context, device: cl.Device) -> bool:
    """Make sure that there are free words. Return False if the device has no such memory, or enough
    words are in use."""
    if queues.free_words:
        return True
    if queues.words >= MOST_WORDS or not has_words(device):
        return False
    flags = cl.svm_mem_flags
    both = flags.READ_WRITE | flags.SVM_FINE_GRAIN_BUFFER
    memory = cl.SVMAllocation(context, WORDS * WIDTH, 0, both)
    start = int(memory.svm_ptr)
    for at in range(0, WORDS * WIDTH, WIDTH):
        queues.add_word(cl.SVM(memory.buf[at : at + WIDTH]), start + at)
    return True
