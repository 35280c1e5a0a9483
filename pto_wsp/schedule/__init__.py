"""Schedules: where and when tasks run, under which bounds, as data. A schedule never changes a result."""
