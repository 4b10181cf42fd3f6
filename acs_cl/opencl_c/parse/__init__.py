"""OpenCL C text to a syntax tree, as the device's own compiler would read it."""
