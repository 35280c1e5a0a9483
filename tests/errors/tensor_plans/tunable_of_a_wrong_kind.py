from pto_wsp import Tunable
from pto_wsp.schedule.tiling import Planner, TilePlan
from pto_wsp.schedule.tiling_names import FunctionNames, NamedValue

NAMES = FunctionNames((NamedValue("x", ("t", "1"), (None, 4096), given=True), NamedValue("w", ("0", "1"), (4096, 6144), given=True),
                   NamedValue("normed", ("t", "1"), (None, 4096)), NamedValue("out", ("t", "1"), (None, 6144))),
                  symbols=("t",), loops=("block",), tunables=("rows",))


def mistake():
    plan = TilePlan("rmsnorm_linear", "ascend_910b", "cpu_sim").used_with("rmsnorm_linear", Planner(NAMES, lambda chosen: chosen))
    plan.but(batch={"out": Tunable(4, "eight")})


# error[J301]: batch['out'] does not take this value
#   --> tunable_of_a_wrong_kind.py:12:5
#      |
#   12 |     plan.but(batch={"out": Tunable(4, "eight")})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a whole number from 1
#    = found:    'eight'
#    = help:     for example batch={"normed": 4}
