"""Find the op that a method of a tile or a function of NumPy means: `x.sum(...)`, `np.max(x, ...)`, `np.add.reduce(x, ...)`.

Methods are those of NumPy's arrays and of torch's tensors: the formulas, and the functions of single elements, of which the tile is the
first operand.

>>> method("exp"), function_of(np.sum).__name__
(Elementwise(name='exp', ...), 'sum')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from pto_wsp.ops.entries import axes, formulas
from pto_wsp.ops.spec import Elementwise, Op
from pto_wsp.ops.table import ENTRIES, FORMULAS, find_ufunc

Traced: TypeAlias = Callable[..., object]

_BY_ARRAY_NAME: Mapping[str, Traced] = MappingProxyType({
    name: formula.array for formula in FORMULAS if formula.array is not None for name in (formula.name, *formula.aliases)})
_OF_ELEMENTS: Mapping[str, Op] = MappingProxyType({
    name: op for op in ENTRIES if isinstance(op, Elementwise) and not op.mask_first
    for name in (op.name, *op.aliases) if not name.endswith("_")})
_METHODS: Mapping[str, Traced] = MappingProxyType({**_OF_ELEMENTS, **_BY_ARRAY_NAME, **formulas.METHODS})
_FUNCTIONS: Mapping[str, Traced] = MappingProxyType({**_BY_ARRAY_NAME, **formulas.FUNCTIONS_OF_NUMPY})
_UFUNCS: Mapping[str, Traced] = MappingProxyType({
    **{name: _BY_ARRAY_NAME[name] for name in ("square", "isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_xor",
                                               "logical_not")},
    "fabs": _OF_ELEMENTS["abs"], "float_power": _OF_ELEMENTS["pow"], "reciprocal": _OF_ELEMENTS["recip"]})
_REDUCTIONS: Mapping[str, Traced] = MappingProxyType({
    "add": axes.sum, "multiply": axes.prod, "maximum": axes.amax, "minimum": axes.amin, "logical_and": axes.all, "logical_or": axes.any})


def method(name: str) -> Traced | None:
    """Return what a method of a tile traces, with the tile as the first argument; None where tiles have no such method."""
    return _METHODS.get(name)


def function_of(function: Callable[..., object]) -> Traced | None:
    """Return the function of `pto` for a NumPy function that is no ufunc; None if `pto` has no function of the same meaning."""
    return _FUNCTIONS.get(function.__name__) if function.__module__ == "numpy" else None


def full_name(function: Callable[..., object]) -> str:
    """Return the name of a NumPy function as users write it, with its module.

    >>> full_name(np.fft.fft), full_name(np.sum)
    ('np.fft.fft', 'np.sum')
    """
    module = (function.__module__ or "numpy").removeprefix("numpy").removeprefix(".")
    return ".".join(filter(None, ("np", module, function.__name__)))


def ufunc_of(ufunc: np.ufunc, way: str) -> Traced | None:
    """Return what a ufunc traces, called (`way` "__call__"), as a reduction ("reduce") or as running sums ("accumulate"); else None."""
    match way:
        case "__call__":
            return find_ufunc(ufunc) or _UFUNCS.get(ufunc.__name__)
        case "reduce":
            found = _REDUCTIONS.get(ufunc.__name__)
            return None if found is None else lambda x, axis=0, **options: found(x, axis, **options)
        case "accumulate" if ufunc is np.add:
            return lambda x, axis=0, **options: formulas.cumsum(x, axis, **options)
        case _:
            return None


def methods() -> tuple[str, ...]:
    """Return the names of a tile's methods."""
    return tuple(sorted(_METHODS))
