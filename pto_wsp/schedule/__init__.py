"""Define schedules, in which each directive is a value."""
