from pto_wsp.schedule.tiling import Planner, TilePlan
from pto_wsp.schedule.tiling_names import FunctionNames, NamedValue

NAMES = FunctionNames((NamedValue("x", ("t", "1"), (None, 4096), given=True), NamedValue("w", ("0", "1"), (4096, 6144), given=True),
                   NamedValue("normed", ("t", "1"), (None, 4096)), NamedValue("out", ("t", "1"), (None, 6144))),
                  symbols=("t",), loops=("block",), tunables=("rows",))


def mistake():
    plan = TilePlan("rmsnorm_linear", "ascend_910b", "cpu_sim").used_with("rmsnorm_linear", Planner(NAMES, lambda chosen: chosen))
    plan.but(tiles={"out": {1: 8192}})


# error[J304]: tiles['out'][1] is longer than its axis
#   --> tile_longer_than_its_axis.py:11:5
#      |
#   11 |     plan.but(tiles={"out": {1: 8192}})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: at most 6144
#    = found:    8192
