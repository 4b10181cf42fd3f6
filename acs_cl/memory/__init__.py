"""Device memory of a runtime: blocks, arrays, and views that share their bytes."""
