"""An InOut argument is written of which ranks have copies."""

import numpy as np

from pto_wsp import DType, InOut, Mesh, Tensor, TensorLayout, jit


@jit
def f(a: InOut[Tensor[4, 8, DType.F32]]):
    a[:] = a + 1


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.replicated(2)))


# error[M103]: every rank along x has a copy of `a`, which is written
#   --> written_replicated_argument.py:9:7
#     |
#   9 | def f(a: InOut[Tensor[4, 8, DType.F32]]):
#     |       ^
#    = expected: an InOut argument that every axis of the mesh cuts
#    = found:    TensorLayout(R, R)
#    = help:     return the new value instead
