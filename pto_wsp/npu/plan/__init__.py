"""Plan a package for the NPU: kernels of one core, launches with descriptors, allocations and edges."""
