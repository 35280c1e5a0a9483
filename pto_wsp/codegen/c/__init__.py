"""C as a tree: its forms, their spelling, and what dtypes and scalars are in it."""
