"""Several devices: one program order, one index of hazards, and memory that is on each of them.

In: launches that name arrays. Out: launches on one of the devices, with copies before them where
bytes are missing there. A runtime of one device has nothing of this room.
"""
