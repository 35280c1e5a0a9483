"""The body includes a file, whose content the cache would not see."""

from pto_wsp import DType, Out, Tile, kernel

TILE = Tile[4, 8, DType.F32]


def mistake() -> None:
    @kernel(c_src='#include "mine.h"')
    def fill(y: Out[TILE]) -> None: ...


# error[K107]: kernel `fill`: its own body cannot stand in a function: a file of yours is included: "mine.h"
#   --> own_included_file.py:9:20
#     |
#   9 |     @kernel(c_src='#include "mine.h"')
#     |                    ^^^^^^^^^^^^^^^^^^^
#    = help:     put its text here: the text is what the cache knows a kernel by; system headers are included with <...>
