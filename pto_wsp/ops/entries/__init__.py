"""Entries of the op table, one family a file."""
