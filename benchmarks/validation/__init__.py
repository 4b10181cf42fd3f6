"""Hold models against reality: the emulator against devices, the translation against a corpus."""
