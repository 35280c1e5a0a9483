"""A kernel without a Python body is compiled for the interpreter."""

import numpy as np

from pto_wsp import DType, Out, Tensor, Tile, kernel, workload


@kernel(c_src="y[0] = 1;")
def fill(y: Out[Tile[4, 8, DType.F32]]) -> None: ...


def mistake(cache: object, environment: object) -> None:
    Y = Tensor(np.zeros((4, 8), np.float32))

    @workload
    def program() -> None:
        fill(Y)
    program().compile(target="interp")


# error[K108]: kernel `fill` has no body for target interp
#   --> own_body_without_meaning.py:9:1
#     |
#   9 | def fill(y: Out[Tile[4, 8, DType.F32]]) -> None: ...
#     | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a Python body
#    = found:    a Python body that does nothing, and bodies of its own: c_src
#    = help:     write the Python body, which every target can run
