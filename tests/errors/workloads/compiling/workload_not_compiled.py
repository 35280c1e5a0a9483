"""A workload is executed in place of its program."""

from pto_wsp import workload


@workload
def layer() -> None: ...


def mistake() -> None:
    layer().execute()


# error[T211]: a workload has no `execute`
#   --> workload_not_compiled.py:11:5
#      |
#   11 |     layer().execute()
#      |     ^^^^^^^^^^^^^^^
#    = help:     compile it first: program = layer().compile(); program.execute
