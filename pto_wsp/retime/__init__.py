"""Time a recorded stream of tasks again, under another schedule or on another arch: no kernel runs, nothing is compiled."""
