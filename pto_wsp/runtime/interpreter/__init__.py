"""Plans and kernels run with NumPy: the oracle."""
