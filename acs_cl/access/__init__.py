"""Access: from a kernel's source and the arguments of a launch to the bytes that it touches."""
