"""From Python functions to IR: annotations, and the traces of kernels and workloads."""
