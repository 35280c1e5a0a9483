"""A brace of the body is not closed."""

from pto_wsp import DType, Out, Tile, kernel

TILE = Tile[4, 8, DType.F32]


def mistake() -> None:
    @kernel(c_src="""
        for (int64_t c = 0; c < y_cols; ++c) {
            y[c] = 1;
    """)
    def fill(y: Out[TILE]) -> None: ...


# error[K107]: kernel `fill`: its own body cannot stand in a function: `{` is not closed
#   --> own_unbalanced.py:10:46
#      |
#   10 |         for (int64_t c = 0; c < y_cols; ++c) {
#      |                                              ^
