"""Check tile programs, and the order of a package's tasks."""
