"""Where kernels keep what they make: the scratch arena, and outputs that go past the caches."""
