"""A reduction of which torch means a pair."""

from pto_wsp import DType, In, Out, Tile, pto


def mistake(x: In[Tile[4, 8, DType.F32]], y: Out[Tile[4, 1, DType.F32]]) -> None:
    pto.store(y, x.max(dim=1, keepdim=True))


# error[T214]: `max`: torch's max along `dim` is a pair of values and places
#   --> max_of_torch.py:7:18
#     |
#   7 |     pto.store(y, x.max(dim=1, keepdim=True))
#     |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^
#    = expected: axis=1, for the values
#    = found:    dim=1
#    = help:     x.amax(dim=1, keepdim=True) gives the values, x.argmax the places
