"""Define the values that stages exchange: scalars, tensors, kernels, workloads, plans."""
