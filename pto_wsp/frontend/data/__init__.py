"""Kernels and workloads that were read as data, held to the rules of traced ones."""
