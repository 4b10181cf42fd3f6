"""Random programs that mix all that a runtime can do, each byte beside NumPy.

`kernels` has the kernels, `host` the memory and what NumPy makes of it, `drawing` the programs, and
`device` runs them. `random_mixes.py` runs many, and cuts down what fails.
"""
