"""Backends on the host: the queues of the driver. `launch.backend` is their contract."""
