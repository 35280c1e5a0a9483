"""The selection rules: the tile instructions of each op."""
