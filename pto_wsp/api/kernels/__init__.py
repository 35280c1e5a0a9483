"""Kernels as a user has them: decorators, what a kernel alone can do, the namespaces `pto` and `ptoisa`."""
