import numpy as np

from pto_wsp import DType, InOut, P, TaskWindow, Tensor, Tile, WindowMode, kernel, pto, workload

F32 = DType.F32


@kernel
def double(x: InOut[Tile[16, 16, F32]]):
    pto.store(x, x * 2)


def mistake():
    X = Tensor(np.zeros((2, 16, 16), np.float32), name="X")

    @workload
    def steps():
        for b in P(2):
            double[b](x=X[b])

    bounded = steps().task_graph(window=TaskWindow(64, "tasks", WindowMode.ABORT))
    bounded.compile(target="ascend_npu")

# error[S101]: target ascend_npu does not enforce task_graph.window.tasks.abort
#   --> directive_the_runtime_lacks.py:22:5
#      |
#   22 |     bounded.compile(target="ascend_npu")
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: no such directive
#    = found:    TaskWindow(size=64, unit='tasks', mode=WindowMode.ABORT)
#    = help:     compile for cpu_sim or interp, which do; or drop it, or compile(..., strict=False) to have it recorded and not enforced
#    = note:     the runtime only stalls: it neither ends the run nor counts
