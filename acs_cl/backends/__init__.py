"""Backends on the host: the driver's queues, and an emulated device. `base` is their contract."""
