"""`.pto` files: the text of a kernel in MLIR's dialect for tiles, before memory is planned and pipes are ordered."""
