"""Kernels in parts for one core each."""
