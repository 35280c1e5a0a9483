"""A running sum is read in the loop whose iterations are on several ranks."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit, tt


@jit
def f(a):
    total, out = tt.zeros(a.shape[1:]), tt.empty(a.shape)
    for i in tt.loop(a.shape[0]):
        total += a[i]
        out[i] = total
    return out


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M108]: `total` is read in the loop over i, whose iterations add terms to it on ranks along 'x'
#   --> sum_read_in_its_loop.py:13:9
#      |
#   13 |         out[i] = total
#      |         ^^^^^^
#    = expected: updates alone: acc += x, acc[:] = np.maximum(acc, x)
#    = found:    TensorLayout(R; Partial('x', 'sum'))
#    = help:     read it behind the loop, after an allreduce
