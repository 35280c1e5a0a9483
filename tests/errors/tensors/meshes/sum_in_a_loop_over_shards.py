"""A loop over a cut dimension sums into state that all ranks have."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit, tt


@jit
def f(a):
    out = tt.zeros(a.shape[1:])
    for i in tt.each(a.shape[0]):
        out[:] = out + a[i]
    return out


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M108]: `out` is written in a loop whose iterations are on ranks along 'x'
#   --> sum_in_a_loop_over_shards.py:12:9
#      |
#   12 |         out[:] = out + a[i]
#      |         ^^^^^^
#    = expected: a place that the loop picks: out[i] = ...
#    = found:    TensorLayout(R)
#    = help:     reduce over the loop's dimension by an operation
