"""Products of matrices: what they start from and add to, how they run, what they pack."""
