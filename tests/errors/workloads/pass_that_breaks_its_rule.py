import numpy as np

from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload

BLOCK = Tile[8, 16, DType.F32]


@kernel
def shifted(x: In[BLOCK], y: Out[BLOCK]):
    pto.store(y, x + 1)


def keep_rows(node, context):
    return node


def mistake():
    X, Y = (Tensor(np.zeros((4, 8, 16), np.float32), name=name) for name in "XY")

    @workload
    def shift_all():
        for b in P(4):
            shifted[b](x=X[b], y=Y[b])

    shift_all().compile(passes={"fuse_rows": keep_rows})

# error[C113]: what stands for pass `fuse_rows` breaks what holds after that pass
#   --> pass_that_breaks_its_rule.py:25:5
#      |
#   25 |     shift_all().compile(passes={"fuse_rows": keep_rows})
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: What handles rows one by one stands in `Rows`.
#    = found:    Compute(result=Value(id=1, type=Tile[8, 16, f32]), op='add', operands=(Value(id=0, type=Tile[8, 16, f32]), ScalarOperand(value=Const(value=1.0), dtype=DType.F32)), attrs=(), guard=None)
#    = note:     it ran on kernel `shifted`, and is `keep_rows` at pass_that_breaks_its_rule.py:13
