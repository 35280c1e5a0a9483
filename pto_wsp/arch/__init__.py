"""Model machines, and the cost of kernels on them."""
