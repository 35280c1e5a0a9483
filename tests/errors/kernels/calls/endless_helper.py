"""A function of a kernel calls itself."""

from pto_wsp import DType, In, Out, Tile, pto


def power(x: object, n: int) -> object:
    return x * power(x, n - 1)  # type: ignore[operator]


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 8, DType.F32]]) -> None:
    pto.store(y, power(x, 3))


# error[K112]: kernel `mistake` goes deeper than Python's recursion limit
#   --> endless_helper.py:7:16
#     |
#   7 |     return x * power(x, n - 1)  # type: ignore[operator]
#     |                ^^^^^^^^^^^^^^^
#    = found:    `power` calls itself
#    = help:     a kernel's body is traced once: recursion needs a Python number that ends it
