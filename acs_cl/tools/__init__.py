"""Commands and tools around the library: `acs-cl` and the pytest plugin."""
