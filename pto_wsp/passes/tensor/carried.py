"""Say how a reduction is computed in pieces: what reduces a piece, what joins two, and where the sum starts."""

from __future__ import annotations

from pto_wsp.ir.dtype import DType
from pto_wsp.ops.entries import elementwise
from pto_wsp.ops.entry import Finish, Identity
from pto_wsp.ops.spec import ColReduce, RowReduce
from pto_wsp.ops.table import TABLE


def carried_ops(entry: RowReduce | ColReduce, dtype: DType) -> tuple[str, str, int | float]:
    """Return the op that reduces a piece, the op that joins two pieces, and the number that the sum starts from.

    The pieces of a mean are summed: divide the sum by the number of terms.
    """
    reduce = entry.name
    if entry.finish is Finish.DIVIDE_BY_COUNT:
        reduce = next(one.name for one in TABLE.values() if type(one) is type(entry) and isinstance(one, RowReduce | ColReduce)
                      and one.identity is Identity.ZERO and one.finish is Finish.NONE)
    joined = {Identity.ZERO: elementwise.add, Identity.ONE: elementwise.mul, Identity.LOWEST: elementwise.maximum,
              Identity.HIGHEST: elementwise.minimum}[entry.identity]
    return reduce, joined.name, _number(entry.identity, dtype)


def _number(identity: Identity, dtype: DType) -> int | float:
    if identity in (Identity.ZERO, Identity.ONE):
        return int(identity is Identity.ONE) if dtype.is_integer else float(identity is Identity.ONE)
    sign = -1 if identity is Identity.LOWEST else 1
    if not dtype.is_integer:
        return sign * float("inf")
    bits = 8 * dtype.nbytes
    unsigned = str(dtype).startswith("u")
    lowest, highest = (0, (1 << bits) - 1) if unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return lowest if sign < 0 else highest
