"""One launch: its command, handle, place in the window, and how it can fail."""
