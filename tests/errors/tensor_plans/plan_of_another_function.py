from pto_wsp.schedule.tiling import Planner, TilePlan
from pto_wsp.schedule.tiling_names import FunctionNames, NamedValue

NAMES = FunctionNames((NamedValue("x", ("t", "1"), (None, 4096), given=True), NamedValue("w", ("0", "1"), (4096, 6144), given=True),
                   NamedValue("normed", ("t", "1"), (None, 4096)), NamedValue("out", ("t", "1"), (None, 6144))),
                  symbols=("t",), loops=("block",), tunables=("rows",))


def mistake():
    plan = TilePlan("rmsnorm_linear", "ascend_910b", "cpu_sim").used_with("rmsnorm_linear", Planner(NAMES, lambda chosen: chosen))
    plan.used_with("softmax", Planner(NAMES, lambda chosen: chosen))


# error[J306]: this is a plan of `rmsnorm_linear`, not of `softmax`
#   --> plan_of_another_function.py:11:5
#      |
#   11 |     plan.used_with("softmax", Planner(NAMES, lambda chosen: chosen))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    TilePlan(rmsnorm_linear on ascend_910b: 0 groups, 0 entries, 0 by hand)
#    = help:     softmax.plan(...) makes one
