"""An exact product of i32 tiles that are computed: the cube core adds up i8 alone."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload

I8, I32 = DType.I8, DType.I32


@kernel
def product(a: In[Tile[16, 16, I8]], b: In[Tile[16, 16, I32]], out: Out[Tile[16, 16, I32]]) -> None:
    pto.store(out, pto.cast(a, I32) @ b)


A, B, C = (Tensor(np.zeros((16, 16), dtype), name=name) for name, dtype in (("A", np.int8), ("B", np.int32), ("C", np.int32)))


@workload
def multiply() -> None:
    product[0](a=A, b=B, out=C)


def mistake() -> None:
    multiply().compile("ascend_npu", arch="ascend_910b")


# error[N104]: the cube core does not multiply i32
#   --> product_of_i32.py:12:20
#      |
#   12 |     pto.store(out, pto.cast(a, I32) @ b)
#      |                    ^^^^^^^^^^^^^^^^^^^^
#    = expected: f32, f16, bf16, i8
#    = help:     multiply i8 as it is loaded: the sums are i32, and exact; or convert to floats: a.astype(DType.F32)
