"""From a workload to a plan, before any pass: places, checks, tensors of bodies, pipelines."""
