from pto_wsp.schedule.tiling import Planner, TilePlan
from pto_wsp.schedule.tiling_names import FunctionNames, NamedValue

NAMES = FunctionNames((NamedValue("x", ("t", "1"), (None, 4096), given=True), NamedValue("w", ("0", "1"), (4096, 6144), given=True),
                   NamedValue("normed", ("t", "1"), (None, 4096)), NamedValue("out", ("t", "1"), (None, 6144))),
                  symbols=("t",), loops=("block",), tunables=("rows",))


def mistake():
    plan = TilePlan("rmsnorm_linear", "ascend_910b", "cpu_sim").used_with("rmsnorm_linear", Planner(NAMES, lambda chosen: chosen))
    plan.but(inner={"out": 64})


# error[J301]: inner['out'] does not take this value
#   --> inner_without_an_axis.py:11:5
#      |
#   11 |     plan.but(inner={"out": 64})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a whole number from 1 for each of m, n, k
#    = found:    64
#    = help:     for example inner={"out": {"k": 64, "stay": "left"}}
