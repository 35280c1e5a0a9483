"""Assemble the op table: every entry by its name, the only source for tracing, NumPy, C, the NPU and costs.

>>> find("exp").npu
'TEXP'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeGuard

import numpy as np

from pto_wsp.errors import InternalError
from pto_wsp.ir.kernel import Compute, Stmt
from pto_wsp.ops.entries import (
    axes,
    broadcast,
    cast,
    compare,
    create,
    elementwise,
    formulas,
    functions,
    index,
    matmul,
    movement,
    quantize,
    random,
    reduce,
    topk_steps,
)
from pto_wsp.ops.entries.formula import Formula
from pto_wsp.ops.spec import Elementwise, Op


class OpFamily(NamedTuple):
    """A section of docs/ops.md: entries, functions of a kernel's body that are made of entries, and formulas."""

    title: str
    entries: Sequence[Op] = ()
    functions: Sequence[Callable[..., object]] = ()
    formulas: Sequence[Formula] = ()


FAMILIES = (
    OpFamily("Arithmetic", elementwise.ENTRIES),
    OpFamily("Functions", functions.ENTRIES),
    OpFamily("Comparison and choice", compare.ENTRIES),
    OpFamily("Arithmetic by row and by column", functions=broadcast.FUNCTIONS),
    OpFamily("Reductions", reduce.ENTRIES),
    OpFamily("Reductions by NumPy's and torch's names", formulas=axes.FORMULAS),
    OpFamily("Formulas of other operations", formulas=formulas.FORMULAS),
    OpFamily("Matrix product", matmul.ENTRIES),
    OpFamily("Movement", movement.ENTRIES),
    OpFamily("Order and place", index.ENTRIES, (*index.FUNCTIONS, *topk_steps.FUNCTIONS)),
    OpFamily("New tiles", create.ENTRIES, create.FUNCTIONS, random.FORMULAS),
    OpFamily("Conversion", cast.ENTRIES, quantize.FUNCTIONS),
)
ENTRIES: tuple[Op, ...] = tuple(entry for family in FAMILIES for entry in family.entries)
FORMULAS: tuple[Formula, ...] = tuple(formula for family in FAMILIES for formula in family.formulas)
FUNCTIONS: tuple[Callable[..., object], ...] = tuple(
    function for family in FAMILIES for function in (*family.functions, *(formula.call for formula in family.formulas)))
TABLE: Mapping[str, Op] = MappingProxyType({entry.name: entry for entry in ENTRIES})
_UFUNCS: Mapping[np.ufunc, Op] = MappingProxyType({
    **{op.ref: op for op in ENTRIES if isinstance(op, Elementwise) and isinstance(op.ref, np.ufunc)},
    # the edge cases of these differ from the ufunc's
    np.exp2: functions.exp2, np.left_shift: elementwise.shl, np.right_shift: elementwise.shr, np.matmul: matmul.matmul})


def find(name: str) -> Op:
    """Return the entry called `name`, as in `Compute.op`."""
    entry = TABLE.get(name)
    if entry is None:
        raise InternalError(f"the op table has no entry `{name}`")
    return entry


def computes(stmt: Stmt, kind: type[Op]) -> TypeGuard[Compute]:
    """Return whether a statement computes an op of a kind, such as a reduction of rows."""
    return isinstance(stmt, Compute) and isinstance(find(stmt.op), kind)


def find_ufunc(ufunc: np.ufunc) -> Op | None:
    """Return the op for a NumPy ufunc on tiles, or None."""
    return _UFUNCS.get(ufunc)
