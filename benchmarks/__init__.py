"""Benchmarks: every speed claim of the project, measured, with its committed results.

Installed as `acs_cl.benchmarks`. `run` measures, `report` draws, `results/` holds the JSON.
"""
