from pto_wsp.schedule.tiling import TilePlan


def mistake():
    TilePlan.load("no_such_plan.json")


# error[J305]: the plan cannot be read
#   --> plan_file_that_is_not_there.py:5:5
#     |
#   5 |     TilePlan.load("no_such_plan.json")
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    [Errno 2] No such file or directory: 'no_such_plan.json'
