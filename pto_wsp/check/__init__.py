"""Check plans before a run: each property is proved, refuted by a counterexample, or not proved."""
