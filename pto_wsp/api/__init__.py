"""What a user holds: decorators, workloads, schedules, programs."""
