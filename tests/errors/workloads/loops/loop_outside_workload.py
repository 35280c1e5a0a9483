"""A loop of workloads stands outside one."""

from pto_wsp import P


def mistake() -> None:
    for _ in P(4):
        pass


# error[K105]: a loop `P(...)` outside a workload
#   --> loop_outside_workload.py:7:14
#     |
#   7 |     for _ in P(4):
#     |              ^^^^
#    = help:     write it in a function decorated with @workload, and call that function
