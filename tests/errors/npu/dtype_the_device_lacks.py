"""A kernel computes on f64, which vector cores do not."""

import numpy as np

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 16, DType.F64]], y: Out[Tile[16, 16, DType.F64]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((16, 16))), Tensor(np.zeros((16, 16)))


@workload
def program() -> None:
    scale(x=X, y=Y)


def mistake() -> None:
    program().compile(target="ascend_npu")


# error[N103]: kernel `scale`: ascend_910b does not run a load on f64
#   --> dtype_the_device_lacks.py:10:18
#      |
#   10 |     pto.store(y, x * 2)
#      |                  ^^^^^
#    = expected: f32, f16, bf16, i32, i16, i8, u8, u16, u32, bool, i64, u64
#    = found:    f64, for ascend_910b
#    = help:     hold the data as DType.F32, which they compute on
