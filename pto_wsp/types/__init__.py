"""Types: dtypes, scalar expressions, axes, layouts, tiles, tensors and their views."""
