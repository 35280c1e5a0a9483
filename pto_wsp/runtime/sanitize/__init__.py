"""A run watched for races and for stores outside what a task said: what was found, as the user's errors."""
