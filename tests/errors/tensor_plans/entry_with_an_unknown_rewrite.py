from pto_wsp.schedule.tiling import Planner, TilePlan
from pto_wsp.schedule.tiling_names import FunctionNames, NamedValue

NAMES = FunctionNames((NamedValue("x", ("t", "1"), (None, 4096), given=True), NamedValue("w", ("0", "1"), (4096, 6144), given=True),
                   NamedValue("normed", ("t", "1"), (None, 4096)), NamedValue("out", ("t", "1"), (None, 6144))),
                  symbols=("t",), loops=("block",), tunables=("rows",))


def mistake():
    plan = TilePlan("rmsnorm_linear", "ascend_910b", "cpu_sim").used_with("rmsnorm_linear", Planner(NAMES, lambda chosen: chosen))
    plan.but(allow=("sum_in_any_order",))


# error[J301]: allow does not take this value
#   --> entry_with_an_unknown_rewrite.py:11:5
#      |
#   11 |     plan.but(allow=("sum_in_any_order",))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: 'row_scale' or 'online_softmax', in a tuple
#    = found:    ('sum_in_any_order',)
#    = help:     for example allow=("online_softmax",)
