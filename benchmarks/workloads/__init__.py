"""Workloads: one module each, with the NumPy reference that its results are checked against."""
