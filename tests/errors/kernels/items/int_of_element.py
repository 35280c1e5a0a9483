"""Python's int() of an element."""

from pto_wsp import DType, In, Out, Scalar, Tensor, Tile, pto


def mistake(x: In[Tile[3, 4, DType.I32]], t: In[Tensor], n: Scalar[DType.I32], out: Out[Tile[3, 4, DType.I32]]):
    pto.store(out, x * int(x[0, 0]))


# error[K103]: int of a tile, whose elements are known only at run time
#   --> int_of_element.py:7:24
#     |
#   7 |     pto.store(out, x * int(x[0, 0]))
#     |                        ^^^^^^^^^^^^
#    = expected: a value that is known while the body is traced
#    = found:    <Tile[1, 1, i32]>
#    = help:     a tile is known only at run time; pto.item(x, row, col) is an element as a scalar of the kernel
