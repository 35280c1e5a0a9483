"""Kernels: their parameters, their trace, and what their bodies may say."""
