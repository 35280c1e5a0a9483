"""A kernel copies f64, of which a vector core has no tiles."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload


@kernel
def copy(x: In[Tile[16, 16, DType.F64]], y: Out[Tile[16, 16, DType.F64]]) -> None:
    pto.store(y, x)


X, Y = Tensor(np.zeros((16, 16))), Tensor(np.zeros((16, 16)))


@workload
def program() -> None:
    copy(x=X, y=Y)


def mistake() -> None:
    program().compile(target="ascend_npu")


# error[N103]: kernel `copy`: ascend_910b does not run a load on f64
#   --> dtype_the_device_does_not_move.py:10:5
#      |
#   10 |     pto.store(y, x)
#      |     ^^^^^^^^^^^^^^^
#    = expected: f32, f16, bf16, i32, i16, i8, u8, u16, u32, bool, i64, u64
#    = found:    f64, for ascend_910b
#    = help:     hold the data as DType.F32, which they compute on
