"""The op table, in which each op is one entry."""
