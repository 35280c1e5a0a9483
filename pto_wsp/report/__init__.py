"""Reports: what a run did, as values."""
