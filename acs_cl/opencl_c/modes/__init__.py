"""The effects of a kernel's body on the memory behind its pointers."""
