"""Two outputs of one task on one array, as it is bound."""

import numpy as np

from pto_wsp import DType, Out, P, Tensor, Tile, kernel, pto, workload


@kernel
def both(low: Out[Tile[4, 8, DType.F32]], high: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(low, pto.full((4, 8), 1.0, DType.F32))
    pto.store(high, pto.full((4, 8), 2.0, DType.F32))


LOW, HIGH = (Tensor(np.zeros((4, 8), np.float32), name=name) for name in ("LOW", "HIGH"))


@workload
def program() -> None:
    for _ in P(1):
        both(low=LOW, high=HIGH)


def mistake() -> None:
    memory = np.zeros((6, 8), np.float32)
    program().compile("cpu_sim").run(LOW=memory[:4], HIGH=memory[2:])


# error[W205]: task both[_=0] writes the same elements twice: `low` and `high` share memory of `LOW` and `HIGH`
#   --> outputs_overlap.py:20:28
#      |
#   20 |         both(low=LOW, high=HIGH)
#      |                            ^^^^
#    = expected: outputs of a task that have no element in common
#    = found:    low is LOW, high is HIGH
#    = help:     give each output elements of its own
