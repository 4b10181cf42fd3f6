"""The scheduler on the device, its host side: tasks, epochs, segments, and the backend."""
