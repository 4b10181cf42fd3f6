"""Benchmarks: every speed claim of the project, measured, with its committed results.

Rooms, each of which imports only those before it: `workloads` (the programs that are measured and
tested), `peers` (what others do with the same work), `suite` (running and timing), `validation`
(models against devices, the translation against foreign kernels), `figures` (tables and pictures).
`results` holds the JSON. The modules at the top are commands, which may use all of them.
"""
