"""Axes: what a workload's loops walk."""
