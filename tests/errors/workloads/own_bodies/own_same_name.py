"""Two parameters give the C body the same name."""

from pto_wsp import DType, In, Out, Tile, kernel

TILE = Tile[4, 8, DType.F32]


def mistake() -> None:
    @kernel(c_src="y[0] = 1;")
    def fill(y: Out[TILE], y_rows: In[TILE]) -> None: ...


# error[K107]: kernel `fill`: `y_rows` names two things in its own body
#   --> own_same_name.py:10:28
#      |
#   10 |     def fill(y: Out[TILE], y_rows: In[TILE]) -> None: ...
#      |                            ^^^^^^
#    = found:    what the body is given of parameter `y`, and what the body is given of parameter `y_rows`
#    = help:     rename the parameter
