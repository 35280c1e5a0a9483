"""Ops of which an element of the result comes from elements at other places: reductions, movement, order, picking by index."""
