"""What is known of a kernel for the NPU before its tasks run: extents, ranges of scalars, which part of a product has terms."""
