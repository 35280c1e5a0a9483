"""What failed in a run, as the user's error."""
