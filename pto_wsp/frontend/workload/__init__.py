"""Workloads: loops, and kernels that are called in them."""
