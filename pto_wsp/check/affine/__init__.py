"""Solve linear integer arithmetic: expressions, systems of constraints, the solver."""
