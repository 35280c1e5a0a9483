"""IR: kernels, workloads and tile programs, with their text and JSON."""
