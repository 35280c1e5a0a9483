"""A workload's function is compiled in place of what it returns."""

from pto_wsp import workload


@workload
def program() -> None: ...


def mistake() -> None:
    program.compile()


# error[T211]: the function of workload `program` has no `compile`
#   --> function_not_called.py:11:5
#      |
#   11 |     program.compile()
#      |     ^^^^^^^^^^^^^^^
#    = expected: program(), which returns the Workload
#    = help:     call it first: program().compile
