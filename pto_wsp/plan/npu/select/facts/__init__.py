"""What is known of a kernel before it is selected: where its state lies, which rows of its values are needed."""
