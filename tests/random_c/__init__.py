"""Random kernels in OpenCL C, usual ones and odd ones, each with its meaning in Python."""
