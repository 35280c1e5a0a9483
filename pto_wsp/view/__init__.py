"""Views: reports as text. Pure functions of values."""
