"""`acs.Queue`: PyOpenCL's own queue class, for programs that are not to be changed."""
