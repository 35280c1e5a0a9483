"""Find tasks that touch the same elements without an order."""
