"""Trace functions on whole arrays."""
