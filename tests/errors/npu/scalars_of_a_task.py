import numpy as np

from pto_wsp import DType, InOut, Scalar, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.passes.lower import lower

F32, I32 = DType.F32, DType.I32
TILE = Tile[16, 16, F32]


@kernel
def many(s0: Scalar[F32], s1: Scalar[F32], s2: Scalar[F32], s3: Scalar[F32], s4: Scalar[F32], s5: Scalar[F32], s6: Scalar[F32],
         s7: Scalar[F32], s8: Scalar[F32], s9: Scalar[F32], s10: Scalar[F32], s11: Scalar[F32], s12: Scalar[F32], s13: Scalar[F32],
         s14: Scalar[F32], s15: Scalar[F32], s16: Scalar[F32], y: InOut[TILE]):
    pto.store(y, y + s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + s10 + s11 + s12 + s13 + s14 + s15 + s16)


def mistake():
    Y = Tensor(np.zeros((16, 16), np.float32), name="Y")

    @workload
    def steps():
        many[0](*[1.0] * 17, Y)

    plan_for_npu(lower(steps().node), builtin_arch("ascend_910b"))

# error[N101]: a task of kernel `many` has too many scalars
#   --> scalars_of_a_task.py:24:9
#      |
#   24 |         many[0](*[1.0] * 17, Y)
#      |         ^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: at most 16 scalars
#    = found:    17 scalars
#    = help:     pass some in a tensor, or make them Constexpr
