# ruff: noqa: F821
"""A table that may name a place twice is written through."""

from pto_wsp import DType, Tensor, jit, tt

F32, I32 = DType.F32, DType.I32


def mistake() -> None:
    @jit
    def f(x: Tensor["t", 64, F32], slots: Tensor["t", I32]):
        out = tt.zeros((1000, 64))
        out[slots] = x
        return out
    f.trace()


# error[J107]: a table may name a place twice: which of the writes stays is not said
#   --> table_without_a_contract.py:13:9
#      |
#   13 |         out[slots] = x
#      |         ^^^^^^^^^^
#    = expected: an Injective table: declared, of rows_of, arange or argsort, or these shifted by a number
#    = found:    <slots: Tensor[t, i32]>
#    = help:     np.add.at(x, table, value) adds, in the order of the entries
