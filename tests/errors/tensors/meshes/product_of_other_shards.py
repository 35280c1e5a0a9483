"""The inner dimensions of a product are cut on one side alone."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, jit


@jit
def f(a, b):
    return a @ b


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(
        Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")),
        Tensor(np.ones((8, 4), np.float32), layout=TensorLayout.replicated(2)))


# error[M101]: the inner dimensions of a product are cut differently
#   --> product_of_other_shards.py:10:12
#      |
#   10 |     return a @ b
#      |            ^^^^^
#   --> product_of_other_shards.py:15:52: the first was made here
#      |
#   15 |         Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")),
#      |                                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> product_of_other_shards.py:16:52: the second was made here
#      |
#   16 |         Tensor(np.ones((8, 4), np.float32), layout=TensorLayout.replicated(2)))
#      |                                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: both cut along one axis, or neither
#    = found:    TensorLayout(R, S('x')) and TensorLayout(R, R)
#    = help:     relayout the second operand to TensorLayout(S('x'), R)
