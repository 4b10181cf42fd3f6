"""What others do with the same work: programs in other systems, measured on the same machine.

`cuda_graphs` compiles and runs `graphs.cu`, which does synthetic graphs in CUDA C++;
`torch_networks` does the static networks in PyTorch.
"""
