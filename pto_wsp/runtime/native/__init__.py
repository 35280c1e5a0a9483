"""What speaks to the runtime library: artifacts that run, recorders, the simulator."""
