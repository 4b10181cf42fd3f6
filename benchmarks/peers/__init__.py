"""Do the same work in other systems, on the same machine; and what others have published of it.

`cuda_graphs` compiles and runs `graphs.cu`, which does synthetic graphs in CUDA C++.
`torch_networks` does the static networks in PyTorch. `published` has figures of papers.
"""
