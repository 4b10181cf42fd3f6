"""Kernels rewritten as functions, which a scheduler on the device calls."""
