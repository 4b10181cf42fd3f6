"""Run and time the benchmarks: the measurements, their turns, and their sources."""
