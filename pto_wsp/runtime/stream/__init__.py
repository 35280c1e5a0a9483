"""The task stream of a plan, enumerated in Python."""
