import numpy as np

from pto_wsp import DType, Out, Tensor, Tile, kernel, pto, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.codegen.npu.mlir.emit import emit_pto
from pto_wsp.plan.lower import lower
from pto_wsp.plan.npu.select.select import select
from pto_wsp.plan.npu.split.plan_for_npu import plan_for_npu


@kernel
def count(out: Out[Tile[1, 64, DType.I32]]):
    pto.store(out, pto.iota((1, 64), DType.I32, axis=1))


def mistake():
    Y = Tensor(np.zeros((1, 64), np.int32), name="Y")

    @workload
    def numbers():
        count[0](out=Y)

    arch = builtin_arch("ascend_910b")
    for use in plan_for_npu(lower(numbers().node), arch).kernels:
        emit_pto(select(use, arch), arch)

# error[N105]: `count`: tile `iota_0_numbers_cells_8` has no form in .pto: it sees a part of tile `iota_0_numbers_cells_7`
#   --> parts_of_a_buffer_in_pto.py:13:20
#      |
#   13 |     pto.store(out, pto.iota((1, 64), DType.I32, axis=1))
#      |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: buffers seen whole
#    = help:     compile for ascend_npu, which gives every buffer its address
