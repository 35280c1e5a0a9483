"""Programs as a user has them. Nothing here is loaded before the first `compile()` or `load()`."""
