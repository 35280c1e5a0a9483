"""Lower workloads to plans, and transform plans and kernels."""
