"""Edges that the device runtime is told, because it does not infer them: program order, after=, write after read."""
