"""The emulator: a discrete-event model of host, window unit and GPU, in integer nanoseconds.

Installed as `acs_cl.emu`. Its clock is the model's: nothing here reads a real one. Data flows
through these files: `trace` (or `generate`, `convert`), a policy of `policies` on the common
`model`, the device (`cost`, `gpu`, `bandwidth`) in the `engine`, then `report` and `plots`. `spec`
has the constants. `emulated` is a backend of runtimes whose launches run in the order of the model.
"""
