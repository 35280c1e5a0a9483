"""Products of matrices for the cube core: what multiplies what, in which pieces, and the instructions."""
