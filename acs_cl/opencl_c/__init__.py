"""Read and rewrite OpenCL C: parse it, infer what a kernel may touch, and make source variants.

Nothing here needs a device. The rest of the library enters through `acs_cl.access.signature`.
Invariant: importing this package loads neither libclang nor pcpp; the first parse does.
"""
