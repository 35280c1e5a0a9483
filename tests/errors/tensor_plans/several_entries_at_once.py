from pto_wsp.schedule.tiling import Planner, TilePlan
from pto_wsp.schedule.tiling_names import FunctionNames, NamedValue

NAMES = FunctionNames((NamedValue("x", ("t", "1"), (None, 4096), given=True), NamedValue("w", ("0", "1"), (4096, 6144), given=True),
                   NamedValue("normed", ("t", "1"), (None, 4096)), NamedValue("out", ("t", "1"), (None, 6144))),
                  symbols=("t",), loops=("block",), tunables=("rows",))


def mistake():
    plan = TilePlan("rmsnorm_linear", "ascend_910b", "cpu_sim").used_with("rmsnorm_linear", Planner(NAMES, lambda chosen: chosen))
    plan.but(tiles={"normd": {"t": 8}, "out": {7: 8}}, loops={"blocks": "tasks"})


# error[J302]: tiles['normd']['t'] = 8 matches nothing: the function has no value or group `normd`
#   --> several_entries_at_once.py:11:5
#      |
#   11 |     plan.but(tiles={"normd": {"t": 8}, "out": {7: 8}}, loops={"blocks": "tasks"})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of its values and groups: normed, out
#    = help:     did you mean normed?
#
# error[J302]: tiles['out'][7] = 8 matches nothing: `out` has no axis `7`
#   --> several_entries_at_once.py:11:5
#      |
#   11 |     plan.but(tiles={"normd": {"t": 8}, "out": {7: 8}}, loops={"blocks": "tasks"})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a dimension of `out`: 0 (the symbol t), 1
#
# error[J302]: loops['blocks'] = tasks matches nothing: the function has no loop `blocks`
#   --> several_entries_at_once.py:11:5
#      |
#   11 |     plan.but(tiles={"normd": {"t": 8}, "out": {7: 8}}, loops={"blocks": "tasks"})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of its loops: block
#    = help:     did you mean block?
