"""The passes from a function on whole tensors to kernels and tasks, one file each; `passes` lists them."""
