"""Read IR text back: kernels as `print_kernel` writes them, workloads and plans as `print_node` does. The grammar is in docs/ir_text.md."""
