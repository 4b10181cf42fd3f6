"""Rewritten kernels: with offsets, with a condition, or with a check of each access."""
