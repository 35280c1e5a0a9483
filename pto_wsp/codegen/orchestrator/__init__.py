"""A plan's body as the C orchestrator: loops stay loops, each task is bound, checked, ordered and submitted."""
