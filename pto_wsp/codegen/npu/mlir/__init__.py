"""`.pto` files: the text of a kernel in MLIR's dialect for tiles, for an assembler that plans memory and orders pipes."""
