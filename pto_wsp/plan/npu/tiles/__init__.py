"""Passes on tile programs: copies of rooms, their places in on-chip memory, and the order of pipes."""
