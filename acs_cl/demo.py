"""``acs-cl demo``: an adaptive image filter, serial and concurrent, checked, timed and drawn.

In: the options ``device``, ``backend``, ``out`` and ``quick``. Out: a table, a PNG, and the exit code:
1 if a result differs from NumPy's.

Every tile of a picture is measured, the measure comes back to the host, and the host decides which kernels
run on this tile: a calm tile gets one blur, a noisy one up to three passes of an average that keeps edges,
one with edges is sharpened after that. Where two neighbours were treated differently their seam is
blended, so the graph of launches follows from the picture. Tiles are views into shared arrays; nothing
below says which launches are independent.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import demo_reference as reference
from . import devices
from .arrays import Array
...
