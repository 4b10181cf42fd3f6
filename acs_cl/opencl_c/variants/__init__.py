"""Rewritten kernels: with offsets, with a condition, or watching what they touch."""
