"""OpenCL C sources, loaded by name: the scheduler, its headers, the kernels of the workloads.

Data only; installed as `acs_cl.kernels_cl`.
"""
