"""Ops of which an element of the result depends on the elements of the operands at its own place alone."""
