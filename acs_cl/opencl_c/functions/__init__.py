"""Kernels rewritten as functions, for a scheduler on the device to call."""
