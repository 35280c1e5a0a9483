"""Products of a kernel for the cube core: what they start from, what they are added to, which way round they read."""
