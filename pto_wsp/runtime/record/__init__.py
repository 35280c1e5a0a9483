"""What is kept of a run: its stream as NumPy columns, the kinds of nodes and edges, times by the clock."""
