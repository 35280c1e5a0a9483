"""Transform kernels: the passes on tiles, products, rows and columns."""
