"""Run and time the benchmarks: what is measured, in which turns, of which sources."""
