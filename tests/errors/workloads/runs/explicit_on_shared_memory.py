"""Deps.explicit(), and two tensors are bound to one array."""

import numpy as np

from pto_wsp import Deps, DType, In, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def double(x: In[Tile[1, 4, DType.F32]], y: Out[Tile[1, 4, DType.F32]]) -> None:
    pto.store(y, x * 2)


rows = np.zeros((9, 4), np.float32)
X, Y = Tensor(rows[:8], name="X"), Tensor(rows[1:], name="Y")


@workload
def program() -> None:
    for b in P(8):
        double[b](x=X[b], y=Y[b])


def mistake() -> None:
    program().task_graph(deps=Deps.explicit()).compile("interp").run()


# error[R113]: `Y`, which tasks write, may share memory with `X`
#   --> explicit_on_shared_memory.py:24:5
#      |
#   24 |     program().task_graph(deps=Deps.explicit()).compile("interp").run()
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: tensors apart from each other, as Deps.explicit() takes no order from data
#    = help:     bind arrays that do not overlap, or use Deps.hybrid()
