"""A body says by which algorithm a collective moves."""

import numpy as np

from pto_wsp import Mesh, Tensor, TensorLayout, allgather, jit


@jit
def f(a):
    return allgather(a, algorithm="tree")


def mistake() -> None:
    f.using(mesh=Mesh(x=2))(Tensor(np.ones((4, 8), np.float32), layout=TensorLayout.sharded(0, 2, "x")))


# error[M109]: allgather in a function on tensors does not take algorithm=
#   --> algorithm_in_a_function.py:10:12
#      |
#   10 |     return allgather(a, algorithm="tree")
#      |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = found:    algorithm='tree'
#    = help:     the plan says how: plan.but(collectives={"total": "tree"})
