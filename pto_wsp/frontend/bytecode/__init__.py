"""What is read from the bytecode of the statement that calls."""
