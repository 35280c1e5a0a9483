"""The op table: what kernels compute, one entry an op, one family a file; `table.find(name)` looks one up."""
