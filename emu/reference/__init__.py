"""Models of the core in plain Python: hazards, footprints and tasks of an epoch.

They are slow and easy to check. The emulator runs on them, and tests compare the core with them.
Nothing in `acs_cl` uses them.
"""
