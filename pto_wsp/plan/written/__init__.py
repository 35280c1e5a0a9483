"""A plan written down: as text for people, as JSON for another process, as a digest for the cache."""
