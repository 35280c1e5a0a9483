"""Pictures of values, as text."""
