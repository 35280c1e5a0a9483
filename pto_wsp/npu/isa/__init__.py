"""Tables of tile instructions and of the device runtime's rules, and the IR of tile programs."""
