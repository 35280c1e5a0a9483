"""Kernels from what was traced to what C is printed from: passes, one a file."""
