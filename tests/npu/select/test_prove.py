"""What is proved of pieces that walk over a region, and what is not."""

from __future__ import annotations

import pytest

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.scalar import Const, ParamExtent, ParamScalar, Scalar, Var, add, ceil_div, maximum, minimum, mul, sub
from pto_wsp.npu.rules.builder import Ranges, nonnegative

ROWS, N = ParamExtent("x", 0), ParamScalar("n", DType.I32)
J = Var("j", 0)
BLOCKS: Ranges = {J: (Const(0), ceil_div(ROWS, Const(64)))}
AT = mul(J, Const(64))
REST = sub(ROWS, AT)


@pytest.mark.parametrize(("value", "ranges"), [
    (AT, BLOCKS),
    (sub(REST, Const(1)), BLOCKS),                                     # no block is empty
    (sub(ROWS, add(AT, minimum(Const(64), REST))), BLOCKS),            # none goes past the end
    (sub(minimum(Const(64), REST), Const(1)), BLOCKS),
    (sub(ROWS, add(AT, minimum(maximum(REST, Const(0)), Const(64)))), BLOCKS),
    (sub(Const(32), add(mul(J, Const(8)), Const(8))), {J: (Const(0), Const(4))}),
    (sub(ROWS, add(J, Const(1))), {J: (Const(0), ROWS)}),
    (sub(maximum(N, Const(1)), Const(1)), {}),
])
def test_proved(value: Scalar, ranges: Ranges) -> None:
    assert nonnegative(value, ranges)


@pytest.mark.parametrize(("value", "ranges"), [
    (sub(ROWS, add(AT, Const(64))), BLOCKS),                           # the last block may be short
    (sub(ROWS, add(J, Const(1))), {J: (Const(0), N)}),                 # n may be more than there are
    (sub(Const(31), add(mul(J, Const(8)), Const(8))), {J: (Const(0), Const(4))}),
    (sub(ROWS, add(J, Const(2))), {J: (Const(0), ROWS)}),
    (sub(minimum(N, Const(1)), Const(1)), {}),
    (sub(ROWS, Const(1)), {}),
    (N, {}),
    (AT, {}),
])
def test_not_proved(value: Scalar, ranges: Ranges) -> None:
    assert not nonnegative(value, ranges)
