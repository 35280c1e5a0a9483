"""golden.py of a package: inputs, and what the workload makes of them, in NumPy alone."""
