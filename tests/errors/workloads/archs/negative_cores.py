"""A machine with fewer cores than none."""

from pto_wsp import builtin_arch


def mistake() -> None:
    builtin_arch("ascend_910b").with_cores(cube=-24)


# error[C110]: Cores does not take this value for cube
#   --> negative_cores.py:7:5
#     |
#   7 |     builtin_arch("ascend_910b").with_cores(cube=-24)
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: Input should be greater than or equal to 0
#    = found:    -24
