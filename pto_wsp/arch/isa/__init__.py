"""The tile instructions of the PTO ISA as data: operands with what is done to them, and the dtypes that each family of cores takes."""
