"""A bias is written to state to which each rank adds a term."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, allreduce, jit, tt


@jit
def f(a, bias):
    total = tt.empty(a.shape[1:])
    total[:] = bias
    for i in tt.loop(a.shape[0]):
        total += a[i]
    return allreduce(total)


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(
        Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")),
        Tensor(np.ones(8, np.float32), layout=TensorLayout.replicated(1)))


# error[M108]: a value that is no term is stored to `total`, of which each rank holds a term
#   --> terms_that_start_at_a_value.py:11:5
#      |
#   11 |     total[:] = bias
#      |     ^^^^^^^^
#   --> terms_that_start_at_a_value.py:10:13: `total` was made here
#      |
#   10 |     total = tt.empty(a.shape[1:])
#      |             ^^^^^^^^^^^^^^^^^^^^^
#    = expected: TensorLayout(R; Partial('x', 'sum'))
#    = found:    TensorLayout(R)
#    = help:     start `total` at 0, and add the value behind the allreduce
