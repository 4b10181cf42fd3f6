"""What others have published for these workloads: speed-ups over one serial stream.

ACS: simulated, an RTX 3070 in Accel-Sim, window of 32, read off the charts of arXiv 2401.12377 to
0.03 or so. GrCUDA: the mean over its six, measured, from the paper of its scheduler (Parravicini
and others, IPDPS 2021).
"""

from __future__ import annotations

ACS = {
    "ant": {"ACS-SW": 1.78, "ACS-HW": 2.01, "CUDA Graph": 0.77},
    "humanoid": {"ACS-SW": 1.81, "ACS-HW": 2.19, "CUDA Graph": 0.77},
    "cheetah": {"ACS-SW": 1.81, "ACS-HW": 2.13, "CUDA Graph": 0.77},
    "walker2d": {"ACS-SW": 1.60, "ACS-HW": 1.90, "CUDA Graph": 0.77},
    "grasp": {"ACS-SW": 1.48, "ACS-HW": 1.81, "CUDA Graph": 0.77},
    "condconv": {"ACS-SW": 1.12, "ACS-HW": 1.18, "CUDA Graph": 0.88},
    "routing": {"ACS-SW": 1.27, "ACS-HW": 1.34, "CUDA Graph": 0.45},
    "instanas": {"ACS-SW": 0.90, "ACS-HW": 1.38, "CUDA Graph": 0.88},
    "nasnet": {"ACS-SW": 1.17, "ACS-HW": 1.30, "CUDA Graph": 1.34},
    "amoebanet": {"ACS-SW": 1.32, "ACS-HW": 1.40, "CUDA Graph": 1.48},
    "squeezenet": {"ACS-SW": 0.96, "ACS-HW": 1.21, "CUDA Graph": 1.19},
    "randwire": {"ACS-SW": 1.27, "ACS-HW": 1.40, "CUDA Graph": 1.40},
}

GRCUDA_MEAN = 1.44
GRCUDA = ("vec", "bs", "img", "ml", "hits", "dl")

FAMILIES = {
    "rigid": ("ant", "grasp", "humanoid", "cheetah", "walker2d"),
    "dynamic": ("instanas", "routing", "condconv"),
    "static": ("nasnet", "amoebanet", "squeezenet", "randwire"),
}

OCCUPANCY = {
    "rigid": {"serial": 0.34, "ACS-SW": 0.63, "ACS-HW": 0.68},
    "dynamic": {"serial": 0.45, "ACS-SW": 0.49, "ACS-HW": 0.55},
    "static": {"serial": 0.40, "ACS-SW": 0.47, "ACS-HW": 0.52},
}
"""Means of a family, of the same runs."""

REAL = {"ACS-SW": 1.78, "CUDA Graph": 0.84}
"""Means of rigid bodies on a real RTX 3060."""

TWICE_THE_WINDOW = {"rigid": "+4.5 %", "dynamic": "little", "static": "little"}
"""What ACS-HW gains by N = 32 over N = 16, the same."""

SW, HW, GRAPH = "ACS-SW", "ACS-HW", "CUDA Graph"
COLUMNS = (SW, HW, GRAPH)
"""Of `ACS`."""
FAMILY = {name: family for family, names in FAMILIES.items() for name in names}
TWELVE = tuple(FAMILY)
"""The paper's workloads."""
