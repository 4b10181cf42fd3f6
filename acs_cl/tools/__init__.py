"""Commands and tools around the library: `acs-cl`, the demo, the pytest plugin."""
