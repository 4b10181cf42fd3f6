"""The process and its machine: files, digests, threads, processes, times."""
