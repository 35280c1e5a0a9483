"""A function of a workload that opens one loop in another, without end."""

from pto_wsp import P, workload


def loops() -> None:
    for _ in P(1):
        loops()


@workload
def mistake() -> None:
    loops()


# error[W114]: more than 64 loops, branches and bodies stand in each other
#   --> too_many_loops.py:7:5
#     |
#   7 |     for _ in P(1):
#     |     ^^^^^^^^^^^^^^
#    = help:     compute several indices from one loop, i // n and i % n; join conditions with &
