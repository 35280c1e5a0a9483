"""The emitter's own checks of tile programs that have addresses and flags: each proves or refuses, and none shares code with a pass."""
