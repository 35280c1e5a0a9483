"""The public API: decorators, workloads, programs, and the search for a schedule."""
