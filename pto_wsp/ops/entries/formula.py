"""Define the entries of `pto` that are formulas: functions that trace other ops of the table, and have no meaning or C of their own.

>>> Formula(call=softmax, aliases=("special_softmax",)).name
'softmax'
"""

from __future__ import annotations

from collections.abc import Callable

from pto_wsp.ir.dtype import DType
from pto_wsp.ops import typing
from pto_wsp.ops.entries.cast import cast
from pto_wsp.ops.entry import Operand, active
from pto_wsp.ops.traits import Fill
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Formula:
    """A function of `pto` that traces ops.

    `aliases` are other names of the function. `synonyms` are words that call nothing, and for which an error names the function. `array`
    is what a method of a tile and NumPy's function of the same names trace, None where they have no such meaning. `tail`: what a short
    tile holds behind the end of an axis that the formula needs whole. `carries`: it could go on from where a tile before ended.
    """

    call: Callable[..., object]
    aliases: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()
    array: Callable[..., object] | None = None
    tail: Fill = Fill.REFUSED
    carries: bool = False

    @property
    def name(self) -> str:
        """The name of the function in `pto`."""
        return self.call.__name__


def same(call: Callable[..., object], *aliases: str, synonyms: tuple[str, ...] = (), tail: Fill = Fill.REFUSED,
         carries: bool = False) -> Formula:
    """Return a formula of which a method and NumPy's function mean the same as the function of `pto`."""
    return Formula(call, aliases, synonyms, call, tail, carries)


def tile_of(name: str, x: object, dtypes: tuple[DType, ...], hint: str = "") -> Operand:
    """Return the value that a tile has here, checked to be of one of the dtypes.

    Raises: T213 for anything else, T204 for another dtype.
    """
    emitter = active(name)
    value = emitter.read(typing.require_tile(name, x))
    typing.check_dtype(name, value, dtypes, hint)
    return value


def in_dtype(x: Operand, dtype: DType) -> Operand:
    """Return a tile in another dtype, itself if it has that dtype."""
    return x if x.dtype is dtype else cast(x, dtype)


def computed(x: Operand) -> Operand:
    """Return a tile of halves in f32, so that a formula rounds to the half once; other tiles unchanged."""
    return in_dtype(x, x.dtype.computed_in)
