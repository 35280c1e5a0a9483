from pto_wsp.schedule.tiling import Planner, TilePlan
from pto_wsp.schedule.tiling_names import FunctionNames, NamedValue

NAMES = FunctionNames((NamedValue("x", ("t", "1"), (None, 4096), given=True), NamedValue("w", ("0", "1"), (4096, 6144), given=True),
                   NamedValue("normed", ("t", "1"), (None, 4096)), NamedValue("out", ("t", "1"), (None, 6144))),
                  symbols=("t",), loops=("block",), tunables=("rows",))


def mistake():
    plan = TilePlan("rmsnorm_linear", "ascend_910b", "cpu_sim").used_with("rmsnorm_linear", Planner(NAMES, lambda chosen: chosen))
    plan.but(tiles={"out": {"w:2": 8}})


# error[J302]: tiles['out']['w:2'] = 8 matches nothing: `w` has no axis `w:2`
#   --> axis_of_another_value_that_there_is_not.py:11:5
#      |
#   11 |     plan.but(tiles={"out": {"w:2": 8}})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a dimension of `w`: 0, 1
