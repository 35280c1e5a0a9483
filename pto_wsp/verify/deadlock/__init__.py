"""Whether the processes of a pipeline can come to wait for each other, and how that reads."""
