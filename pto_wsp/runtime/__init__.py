"""Runs: a plan run by the interpreter or natively, what it works on, what is kept of it, how it fails."""
