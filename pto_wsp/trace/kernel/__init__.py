"""Trace the bodies of kernels."""
