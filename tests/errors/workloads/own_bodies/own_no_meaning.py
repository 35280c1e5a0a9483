"""A kernel without a Python body is asked for its meaning."""

import numpy as np

from pto_wsp import DType, Out, Tile, kernel


@kernel(c_src="y[0] = 1;")
def fill(y: Out[Tile[4, 8, DType.F32]]) -> None: ...


def mistake() -> None:
    fill.run(np.zeros((4, 8), np.float32))


# error[K108]: kernel `fill` has no Python body to run
#   --> own_no_meaning.py:13:5
#      |
#   13 |     fill.run(np.zeros((4, 8), np.float32))
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    bodies of its own: c_src
#    = help:     write the Python body, which is what the others are held to; or run it in a workload on cpu_sim
