"""Models in plain Python of what the native core does: hazards, footprints and tasks of an epoch.

They are slow and easy to check. The emulator runs on them, and tests hold the core against them.
Nothing in `acs_cl` uses them.
"""
