"""None is said where a directive takes a policy: it would take back what was said before."""

from pto_wsp import DispatchPolicy, workload


@workload
def program() -> None:
    pass


def mistake() -> None:
    program().dispatch(DispatchPolicy.round_robin(4)).dispatch(None)  # type: ignore[arg-type]


# error[S102]: dispatch does not take this value
#   --> directive_of_none.py:12:5
#      |
#   12 |     program().dispatch(DispatchPolicy.round_robin(4)).dispatch(None)  # type: ignore[arg-type]
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a dispatch policy, such as DispatchPolicy.round_robin(4)
#    = found:    None
#    = help:     leave the call out; w.under(Schedule()) takes back all that was said
