"""The emulator: a discrete-event model of host, window unit and GPU, in integer nanoseconds.

Installed as `acs_cl.emu`. Its clock is the model's: nothing here reads a real one.
"""
