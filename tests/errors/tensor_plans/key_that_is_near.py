# ruff: noqa: E501
"""A key of a plan is misspelled."""

import numpy as np

from pto_wsp import jit


def mistake() -> None:
    @jit
    def f(x):
        return x * 2
    f.plan(np.ones((4, 8), np.float32)).but(tile={"out": {0: 2}})


# error[T101]: `TilePlan.but`: got an unexpected keyword argument 'tile'
#   --> key_that_is_near.py:13:5
#      |
#   13 |     f.plan(np.ones((4, 8), np.float32)).but(tile={"out": {0: 2}})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: TilePlan.but(*, tiles=None, groups=None, inner=None, batch=None, tails=None, split=None, loops=None, order=None, keep=None, flat=None, allow=None, tunables=None, collectives=None, schedule=None)
#    = found:    TilePlan.but(tile={'out': {0: 2}})
#    = help:     did you mean tiles?
