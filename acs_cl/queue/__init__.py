"""`acs.Queue`: a subclass of PyOpenCL's queue, for programs that are not to be changed."""
