"""What others do with the same work: programs in other systems, measured on the same machine.

`cuda_graphs` compiles and runs `graphs.cu`, which does synthetic graphs in CUDA C++; `beside_cuda`
is the command that measures them there and here; `torch_networks` does the static networks in
PyTorch.
"""
