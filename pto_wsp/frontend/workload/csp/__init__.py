"""Pipelines in a workload: channels, events, and the statements of processes that use them."""
