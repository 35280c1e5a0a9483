"""The target of a plan is none."""

import numpy as np

from pto_wsp import jit


def mistake() -> None:
    @jit
    def f(x):
        return x * 2
    f.plan(np.ones((4, 8), np.float32), target="ascendnpu")


# error[C104]: there is no target 'ascendnpu'
#   --> target_spelled_otherwise.py:12:5
#      |
#   12 |     f.plan(np.ones((4, 8), np.float32), target="ascendnpu")
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: one of cpu_sim, interp, ascend_npu, pto
#    = help:     did you mean ascend_npu?
