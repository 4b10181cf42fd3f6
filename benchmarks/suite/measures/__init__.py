"""Measure one thing each: `measure` returns the results, and `bars` the values to reach.

`run.BENCHMARKS` lists them.
"""
