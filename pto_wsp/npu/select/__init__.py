"""Select tile instructions: lower kernel IR to tile programs."""
