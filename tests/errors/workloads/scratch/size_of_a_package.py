"""A package is made of a workload with a tensor of which only a run knows the size."""

from pto_wsp import DType, In, Out, P, Symbol, Tensor, Tile, ceildiv, kernel, pto, workload


@kernel
def twice(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, x * 2)


t = Symbol("t")
X, Y = Tensor(shape=(t, 8), dtype=DType.F32), Tensor(shape=(64, 8), dtype=DType.F32)


@workload
def program() -> None:
    for i in P(ceildiv(t, 4)):
        twice[i](X[i * 4:].clip(4, 8), Y[i * 4:t].clip(4, 8))


def mistake() -> None:
    program().compile(target="ascend_npu")


# error[C109]: only a run knows the size of `X`, and a package states the sizes of its tensors
#   --> size_of_a_package.py:22:5
#      |
#   22 |     program().compile(target="ascend_npu")
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a shape of numbers
#    = help:     declare the largest, Tensor(shape=(4096, 8), ...), and cut it where it is used: X[:n]; of @jit: f.lower(plan, x=X)
