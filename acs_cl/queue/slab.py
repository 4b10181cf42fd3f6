"""Slabs: memory of a runtime in PyOpenCL's form, as `Queue.allocator` gives it to a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyopencl as cl

from .. import core
from ..records import HostArray

if TYPE_CHECKING:
    _SVM = cl.SVM[HostArray]
else:
    _SVM = cl.SVM


class Slab(_SVM):
    """Memory of the runtime in PyOpenCL's form. It is freed when the last reference is gone."""

    acs_base: object
    acs_span: core.native.Memory
