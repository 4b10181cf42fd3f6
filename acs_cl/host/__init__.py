"""What the process and its machine offer: files, digests, threads, processes, times."""
