"""Drivers: other OpenCL drivers than the one at hand, and what of the tests passes on each.

`install` fetches them into build/drivers. `suites` says what is run, `running` runs it in processes
of its own and counts, `counting` is the part of that inside pytest. `python -m drivers`, with the
tests on the path, does all of it and writes a JSON; `make drivers` is that for every driver.
"""
