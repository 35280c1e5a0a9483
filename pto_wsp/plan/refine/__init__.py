"""Passes that say more of a plan, or drop what is said twice: what runs stays the same."""
