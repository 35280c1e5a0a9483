from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def copy(x: In[Tile[1, 8, DType.F32]], y: Out[Tile[1, 8, DType.F32]]):
    pto.store(y, x)


X, Y = Tensor(shape=(4, 8), dtype=DType.F32), Tensor(shape=(4, 8), dtype=DType.F32)


@workload
def copy_all():
    for b in P(4):
        copy[b](X[b], Y[b])


def mistake():
    copy_all().compile("interp", passes=["drop_repeated_checks", "place_tasks"])

# error[C117]: target interp does not do without pass `price_tasks`
#   --> pass_that_is_required.py:19:5
#      |
#   19 |     copy_all().compile("interp", passes=["drop_repeated_checks", "place_tasks"])
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: simulated time is made of the costs of tasks
#    = found:    a list without price_tasks
#    = help:     'none' is the list of what target interp needs: place_tasks, price_tasks
