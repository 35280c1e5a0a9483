"""A symbol has no value when the program runs."""

import numpy as np

from pto_wsp import DType, In, Out, P, Symbol, Tensor, Tile, kernel, pto, workload


@kernel
def scale(x: In[Tile[16, 128, DType.F32]], y: Out[Tile[16, 128, DType.F32]]) -> None:
    pto.store(y, x * 2)


X, Y = Tensor(np.zeros((4, 16, 128), np.float32)), Tensor(np.zeros((4, 16, 128), np.float32))
n = Symbol("n")


@workload
def program() -> None:
    for b in P(n):
        scale[b](x=X[b], y=Y[b])


def mistake() -> None:
    program().compile(target="interp").run()


# error[W101]: symbol `n` has no value
#   --> unbound_symbol.py:24:5
#      |
#   24 |     program().compile(target="interp").run()
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = help:     give it at run time: execute(n=...)
#    = note:     it is used at unbound_symbol.py:19:14
