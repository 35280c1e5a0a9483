"""Workloads as a user has them: the decorator, combinators, processes, what is tunable."""
