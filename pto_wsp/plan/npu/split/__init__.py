"""From a plan of tasks to a plan for the NPU: descriptors from views, kernels of one core each."""
