"""Random kernels of the odder forms of OpenCL C, each with its meaning in Python."""
