"""A kernel has a body for another target only."""

import numpy as np

from pto_wsp import DType, Out, Tensor, Tile, kernel, workload


@kernel(cpp_src="TEXPANDS(y, 1);")
def fill(y: Out[Tile[4, 8, DType.F32]]) -> None: ...


def mistake(cache: object, environment: object) -> None:
    Y = Tensor(np.zeros((4, 8), np.float32))

    @workload
    def program() -> None:
        fill(Y)
    program().compile()


# error[K108]: kernel `fill` has no body for target cpu_sim
#   --> own_body_for_another_target.py:9:1
#     |
#   9 | def fill(y: Out[Tile[4, 8, DType.F32]]) -> None: ...
#     | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a Python body, c_src or c_path
#    = found:    a Python body that does nothing, and bodies of its own: cpp_src
#    = help:     write the Python body, which every target can run, or @kernel(c_src=...) for this one
