"""What a body in C adds is not known."""


from pto_wsp import Acc, DType, In, Tile, kernel, pto


def mistake() -> None:
    @kernel(c_src="for (int i = 0; i < y_rows * y_cols; i++) y[i] = x[i];")
    def part(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32]]) -> None:
        pto.store(y, x)


# error[K101]: kernel `part`: Acc parameter `y` in a kernel with a body of its own
#   --> acc_of_an_own_body.py:9:44
#     |
#   9 |     def part(x: In[Tile[4, 8, DType.F32]], y: Acc[Tile[4, 8, DType.F32]]) -> None:
#     |                                            ^
#    = expected: a body of tile operations, which says what a task adds
#    = help:     declare `y` Out, on a scratch tensor, and add in a second kernel with Acc
