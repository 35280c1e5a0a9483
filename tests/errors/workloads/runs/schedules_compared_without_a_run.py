"""Schedules are timed on a run, and none is given."""

from pto_wsp import TaskWindow, compare


def mistake() -> None:
    compare({"wide": TaskWindow(256)})


# error[S112]: there is no run to time the schedules on
#   --> schedules_compared_without_a_run.py:7:5
#     |
#   7 |     compare({"wide": TaskWindow(256)})
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    schedules alone
#    = help:     add a program that has run, compare({"as run": program, ...}), or call program.compare({...})
#    = note:     while comparing 'wide'
