"""Plans for the NPU: kernels as tile programs, tasks as submissions to the device runtime."""
