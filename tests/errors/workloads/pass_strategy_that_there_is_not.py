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
    copy_all().compile("interp", passes="nonne")

# error[C104]: there is no pass strategy 'nonne'
#   --> pass_strategy_that_there_is_not.py:19:5
#      |
#   19 |     copy_all().compile("interp", passes="nonne")
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of 'default', 'clean', 'none', a list of passes, or a dict of functions (IR, context) -> IR, by the names of the passes that they stand for
#    = help:     did you mean 'none'?
