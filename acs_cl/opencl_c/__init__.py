"""Reading and rewriting OpenCL C: parse, infer what a kernel may touch, make source variants.

Nothing here needs a device at hand; `acs_cl.access.signature` is the way in for the rest of the
library. Invariant: importing this package loads neither libclang nor pcpp; the first parse does.
"""
