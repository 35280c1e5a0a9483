"""How values lie in their rooms, and from one way to another: copies, transpositions, rows with gaps, counted numbers."""
