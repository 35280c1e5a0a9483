"""Static checks: each gives proved, a counterexample, or not proved."""
