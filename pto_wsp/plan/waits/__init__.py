"""What a body or a task of a plan waits for: tasks named by `after=`, elements that tasks write, channels and events."""
