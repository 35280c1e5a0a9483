"""Passes that keep whole tiles and loops as the user wrote them: what is computed, once and only if it is needed."""
