"""Kernels in C: rewrite, group what shares a loop, emit."""
