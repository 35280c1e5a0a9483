from pto_wsp.schedule.tiling import Planner, TilePlan
from pto_wsp.schedule.tiling_names import FunctionNames, NamedValue

NAMES = FunctionNames((NamedValue("x", ("t", "1"), (None, 4096), given=True), NamedValue("w", ("0", "1"), (4096, 6144), given=True),
                   NamedValue("normed", ("t", "1"), (None, 4096)), NamedValue("out", ("t", "1"), (None, 6144))),
                  symbols=("t",), loops=("block",), tunables=("rows",))


def mistake():
    plan = TilePlan("rmsnorm_linear", "ascend_910b", "cpu_sim").used_with("rmsnorm_linear", Planner(NAMES, lambda chosen: chosen))
    plan.but(tiles={"out": {1.5: 64}})


# error[J301]: tiles['out'] has an axis that is none
#   --> entry_with_a_wrong_axis.py:11:5
#      |
#   11 |     plan.but(tiles={"out": {1.5: 64}})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a symbol such as "t", the number of a dimension, or "w:0", a dimension of another value
#    = found:    1.5
