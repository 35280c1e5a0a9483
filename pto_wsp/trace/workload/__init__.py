"""Trace the bodies of workloads."""
