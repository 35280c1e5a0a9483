"""An event is waited for more often than it is recorded."""

import numpy as np

from pto_wsp import DType, Event, In, Out, P, Tensor, Tile, kernel, pto, record, synchronize, workload

X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


ready = Event("ready")


@workload
def program() -> None:
    with P.pipe():
        for i in P.seq(2):
            scale[i](x=X[i], y=Y[i])
            record(ready)
        for _ in P.seq(3):
            synchronize(ready)


def mistake() -> None:
    program().compile(target="interp")


# error[W112]: process `ready` waits for a record of event `ready` that never comes
#   --> record_that_never_comes.py:25:13
#      |
#   25 |             synchronize(ready)
#      |             ^^^^^^^^^^^^^^^^^^
#    = found:    record number 3; process `scale` has ended
#    = help:     record as often as any process synchronizes
