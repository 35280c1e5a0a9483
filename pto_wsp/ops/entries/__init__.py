"""The entries of the op table, a family a file."""
