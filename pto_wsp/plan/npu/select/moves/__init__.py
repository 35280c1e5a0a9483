"""Moves between global memory and chip: what is moved, which part of it is valid, and when."""
