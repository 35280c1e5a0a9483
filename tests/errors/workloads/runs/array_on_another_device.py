"""An array is bound that lies on another device."""

import numpy as np

from pto_wsp import DType, InOut, Tensor, Tile, kernel, pto, workload


@kernel
def twice(x: InOut[Tile[2, 4, DType.F32]]) -> None:
    pto.store(x, x * 2)


X = Tensor(np.zeros((2, 4), np.float32))


class OnCuda:
    """A stand-in for a tensor of PyTorch on the second GPU."""

    __module__ = "torch"

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 1

    def __dlpack__(self, **options: object) -> object:
        raise BufferError("not on the host")


@workload
def program() -> None:
    twice(X)


def mistake() -> None:
    program().compile(target="interp").run(X=OnCuda())


# error[R113]: tensor `X` is bound to an array on another device
#   --> array_on_another_device.py:34:5
#      |
#   34 |     program().compile(target="interp").run(X=OnCuda())
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: host memory
#    = found:    torch.OnCuda on cuda:1
#    = help:     copy it to the host first: x.cpu()
