"""A loop's bound is read from a tensor that a task writes, for the runtime that makes all tasks before it runs one."""

import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))
lens = Tensor(np.zeros((1, 4), np.int32))


@kernel
def measure(n: Out[Tile[1, 4, DType.I32]]) -> None:
    pto.store(n, pto.zeros((1, 4), DType.I32))


@workload
def program() -> None:
    measure(n=lens)
    for b in P(lens[0, 0]):
        scale[b](x=X[b], y=Y[b])


def mistake() -> None:
    program().compile(target="ascend_npu", options={"runtime": "host_build_graph"})


# error[N101]: the runtime host_build_graph cannot read `lens[0, 0]`, which tasks write
#   --> scalar_read_from_an_output.py:25:14
#      |
#   25 |     for b in P(lens[0, 0]):
#      |              ^^^^^^^^^^^^^
#    = expected: the runtime tensormap_and_ringbuffer, or a tensor that tasks only read
#    = found:    host_build_graph
#    = help:     host_build_graph makes all tasks before it runs one; make the number a Symbol, or give it in a tensor
