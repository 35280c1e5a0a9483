"""A value is written to a parameter that is cut otherwise."""

import numpy as np

from pto_wsp import DType, InOut, Mesh, Tensor, TensorLayout, jit


@jit
def f(a: InOut[Tensor[4, 8, DType.F32]], b):
    a[:] = b


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(
        Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")),
        Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")))


# error[M108]: a value is written to a tensor that ranks hold otherwise
#   --> written_where_shards_differ.py:10:5
#      |
#   10 |     a[:] = b
#      |     ^^^^
#   --> written_where_shards_differ.py:16:52: the value was made here
#      |
#   16 |         Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(1, 2, "x")))
#      |                                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   --> written_where_shards_differ.py:15:52: the tensor was made here
#      |
#   15 |         Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")),
#      |                                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: TensorLayout(S('x'), R), of `a`
#    = found:    TensorLayout(R, S('x'))
#    = help:     relayout the value to TensorLayout(S('x'), R) first
