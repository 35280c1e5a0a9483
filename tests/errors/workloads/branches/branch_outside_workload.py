"""A branch stands outside a workload."""

from pto_wsp import P


def mistake() -> None:
    with P.when(True):
        pass


# error[K105]: a branch `P.when(...)` outside a workload
#   --> branch_outside_workload.py:7:10
#     |
#   7 |     with P.when(True):
#     |          ^^^^^^^^^^^^
#    = help:     write it in a function decorated with @workload, and call that function
