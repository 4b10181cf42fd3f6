"""Backends on the host: the driver's queues, and an emulated device. `launch.backend` is their
contract."""
