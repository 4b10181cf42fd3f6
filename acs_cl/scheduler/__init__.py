"""The host side of the scheduler on the device: tasks, epochs, segments, and the backend."""
