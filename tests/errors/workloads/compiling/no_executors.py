"""A policy names no executors."""

from pto_wsp import DispatchPolicy


def mistake() -> None:
    DispatchPolicy.round_robin(num_aicpus=0)


# error[S102]: RoundRobin does not take this value for num_aicpus
#   --> no_executors.py:7:5
#     |
#   7 |     DispatchPolicy.round_robin(num_aicpus=0)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: Input should be greater than or equal to 1
#    = found:    0
