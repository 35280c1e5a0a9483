"""A list is wrapped, which has no memory to share."""

from pto_wsp import Tensor


def mistake() -> None:
    Tensor([[1.0, 2.0]])


# error[D101]: a Tensor cannot wrap something that is no array
#   --> list_as_tensor.py:7:5
#     |
#   7 |     Tensor([[1.0, 2.0]])
#     |     ^^^^^^^^^^^^^^^^^^^^
#    = expected: an array: of NumPy, PyTorch, JAX, or any with __dlpack__, __array_interface__ or __array__
#    = found:    list
#    = help:     np.asarray(x) makes an array of it
