"""Shards between rows of their neighbours are used as a tensor."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, halo, jit


@jit
def f(a):
    beside = halo(a, 1)
    return np.exp(beside)


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M108]: `beside` has rows of the neighbours beside each shard of dimension 0
#   --> halo_without_slices.py:11:12
#      |
#   11 |     return np.exp(beside)
#      |            ^^^^^^^^^^^^^^
#   --> halo_without_slices.py:10:14: made here
#      |
#   10 |     beside = halo(a, 1)
#      |              ^^^^^^^^^^
#    = expected: slices of 4 rows: beside[j:j + 4], j a number from 0 to 2
