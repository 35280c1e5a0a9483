"""Report what a run cost and why, and what another schedule or machine would cost."""
