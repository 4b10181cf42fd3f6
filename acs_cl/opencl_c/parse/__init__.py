"""Parse OpenCL C into a syntax tree, as the device's own compiler would read it."""
