"""Measure one thing each: `measure` gives what was found, `bars` what it has to reach.

`run.BENCHMARKS` lists them.
"""
