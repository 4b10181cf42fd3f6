"""The version, in the one place that the package metadata, caches and reports read it from."""

__version__ = "0.1.0"
