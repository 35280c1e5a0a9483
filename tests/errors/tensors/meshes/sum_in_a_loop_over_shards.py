"""A loop over a cut dimension carries a state that depends on the order of the iterations."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, allreduce, jit, tt


@jit
def f(a):
    out = tt.zeros(a.shape[1:])
    for i in tt.loop(a.shape[0]):
        out[:] = out * 2 + a[i]
    return allreduce(out)


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M108]: `out` is written in a loop whose iterations are on ranks along 'x'
#   --> sum_in_a_loop_over_shards.py:12:9
#      |
#   12 |         out[:] = out * 2 + a[i]
#      |         ^^^^^^
#    = expected: a place that the loop picks, out[i] = ..., or state made before the loop that each iteration adds to: out += ...
#    = found:    TensorLayout(R)
#    = help:     reduce over the loop's dimension by an operation
