"""Selection: a kernel for one core becomes a program of tile instructions, before it has addresses and flags."""
