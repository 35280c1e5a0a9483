"""One type of pass and one runner, for every level of IR."""
