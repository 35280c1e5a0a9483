"""An operator makes a value in a kernel of instructions."""

from pto_wsp import DType, In, Out, Tile, ptoisa, ptoisa_kernel

TILE = Tile[4, 8, DType.F32]


@ptoisa_kernel
def twice(x: In[TILE], y: Out[TILE]) -> None:
    t = ptoisa.Tile(4, 8, DType.F32)
    ptoisa.TLOAD(t, x)
    ptoisa.TSTORE(y, t * 2)


def mistake() -> None:
    twice.specialise()


# error[K111]: `pto.mul` makes a value without a destination, in a kernel of instructions
#   --> isa_operator.py:12:22
#      |
#   12 |     ptoisa.TSTORE(y, t * 2)
#      |                      ^^^^^
#    = expected: an instruction that writes a declared tile
#    = help:     ptoisa.TMUL(dst, ...)
