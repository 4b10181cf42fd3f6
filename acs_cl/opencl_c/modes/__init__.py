"""What a kernel's body may do to the memory behind its pointers."""
