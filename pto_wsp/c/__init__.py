"""Emit C from plans and kernels."""
