"""Several devices: one program order, one hazard index, and arrays that can be on each of them.

Input: launches that name arrays. Output: launches on one of the devices, behind copies of the bytes
that are missing there. A runtime with one device uses nothing of this package.
"""
