"""What rewrites and checks may rely on about an op, beyond its meaning: traits, which an entry states and others ask for.

A trait names the dtypes that it holds for, bit for bit: for NaN, both zeros, infinities and the extremes too. A trait that is not
stated is not relied on. `tests/ops/test_traits.py` holds every trait of every entry to its statement.

>>> find("mul").is_neutral(1.0, DType.F32, Side.LEFT), find("add").is_neutral(0.0, DType.F32, Side.RIGHT)
(True, False)
"""

from __future__ import annotations

import math
from enum import Enum

import numpy as np

from pto_wsp.ir.dtype import DType
from pto_wsp.values import dataclass


class Side(Enum):
    """On which side of an op of two operands a number stands."""

    LEFT = "left"
    RIGHT = "right"


EITHER = (Side.LEFT, Side.RIGHT)


@dataclass(frozen=True, slots=True)
class Neutral:
    """A number that, on any of `sides`, leaves every bit of the other operand as it is, for operands of `dtypes`."""

    value: int
    sides: tuple[Side, ...]
    dtypes: tuple[DType, ...]

    def covers(self, number: int | float, dtype: DType, side: Side) -> bool:
        """Tell whether this is the number, on that side and for that dtype; -0.0 is not 0."""
        return number == self.value and math.copysign(1, number) == math.copysign(1, self.value) and side in self.sides \
            and dtype in self.dtypes


class Fill(Enum):
    """The value that an op requires in the lanes of a short tile past its valid part, so that no element of the result depends on them.

    NONE: any value. VALID: the op receives the number of valid elements. REFUSED: no value works.
    """

    NONE = "anything"
    ZERO = "0"
    ONE = "1"
    LOWEST = "-inf, or the smallest integer"
    HIGHEST = "+inf, or the largest integer"
    NAN_OR_HIGHEST = "NaN, or the largest integer"
    VALID = "the number of valid entries"
    REFUSED = "no short tile"

    def number(self, dtype: DType) -> int | float | bool:
        """Return the number, for elements of `dtype`."""
        if dtype.is_bool:
            return self in (Fill.ONE, Fill.HIGHEST, Fill.NAN_OR_HIGHEST)
        match self:
            case Fill.ZERO:
                return 0
            case Fill.ONE:
                return 1
            case Fill.LOWEST:
                return -math.inf if dtype.is_real else int(np.iinfo(dtype.np).min)
            case Fill.HIGHEST:
                return math.inf if dtype.is_real else int(np.iinfo(dtype.np).max)
            case Fill.NAN_OR_HIGHEST:
                return math.nan if dtype.is_real else int(np.iinfo(dtype.np).max)
            case _:
                raise ValueError(self)
