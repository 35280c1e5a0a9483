# ruff: noqa: F821
"""What a call writes is also read by it."""

import numpy as np

from pto_wsp import DType, InOut, Tensor, jit

F32 = DType.F32


def mistake() -> None:
    @jit(target="interp")
    def f(state: InOut[Tensor["t", F32]], x: Tensor["t", F32]):
        state[:] = state + x
    both = np.zeros(8, np.float32)
    f(both[:4], both[2:6])


# error[J122]: argument `state` is written, and shares memory with argument `x`
#   --> argument_that_overlaps.py:16:5
#      |
#   16 |     f(both[:4], both[2:6])
#      |     ^^^^^^^^^^^^^^^^^^^^^^
#    = expected: arrays apart from each other
#    = help:     give a copy of one: x.copy() for argument `x`
