"""What a run works on, looked at before it starts: bound arrays and symbols, contracts, data of sparse axes."""
