"""An array of another library is bound that requires gradients, as a parameter of a model does."""

import numpy as np

from pto_wsp import DType, InOut, Tensor, Tile, kernel, pto, workload


@kernel
def twice(x: InOut[Tile[2, 4, DType.F32]]) -> None:
    pto.store(x, x * 2)


X = Tensor(np.zeros((2, 4), np.float32))


class Parameter:
    """A stand-in for torch.nn.Parameter."""

    __module__ = "torch.nn"
    requires_grad = True

    def __dlpack__(self, **options: object) -> object:
        raise BufferError("use tensor.detach()")


@workload
def program() -> None:
    twice(X)


def mistake() -> None:
    program().compile(target="interp").run(X=Parameter())


# error[R113]: tensor `X` is bound to a tensor that requires gradients
#   --> tensor_that_requires_gradients.py:32:5
#      |
#   32 |     program().compile(target="interp").run(X=Parameter())
#      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: a tensor outside of any graph of gradients
#    = found:    torch.nn.Parameter
#    = help:     x.detach(), or torch.no_grad() around the call
