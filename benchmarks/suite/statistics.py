"""Summarise samples: quantiles, spreads, and pairs of interleaved samples.

Every figure of the project is a median with its quartiles, because a mean hides a noisy machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values are, interpolated between neighbours."""
    return float(np.quantile(np.asarray(values, dtype=float), share))


def spread(values: Sequence[float], digits: int = 3) -> dict[str, Any]:
    """Return least, quartiles, greatest and count."""
    shares = {"min": 0.0, "p25": 0.25, "median": 0.5, "p75": 0.75, "max": 1.0}
    figures: dict[str, Any] = {k: round(quantile(values, s), digits) for k, s in shares.items()}
    figures["samples"] = len(values)
    return figures


def spreads(samples: Mapping[str, Sequence[float]], digits: int = 3) -> dict[str, dict[str, Any]]:
    """Return the spread of each, by name."""
    return {name: spread(values, digits) for name, values in samples.items()}


def ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    """Divide sample by sample, so that a machine that changes its speed cancels out."""
    return [a / b for a, b in zip(over, under, strict=True)]


def differences(more: Sequence[float], less: Sequence[float]) -> list[float]:
    """Subtract sample by sample."""
    return [a - b for a, b in zip(more, less, strict=True)]


def geomean(values: Sequence[float]) -> float:
    """Return the geometric mean: the mean of ratios."""
    return float(prod(values) ** (1 / len(values))) if values else 0.0
