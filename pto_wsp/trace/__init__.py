"""Trace Python functions to IR, and check IR read as data."""
