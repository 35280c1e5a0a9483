"""Checks that arrays bound later have the extents which kernels were made for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pto_wsp.expr.kernel import Kernel
from pto_wsp.expr.tile_program import ParamAccess
from pto_wsp.plan.model import Check, CheckKind, Submit
from pto_wsp.plan.npu.split.descriptors import Described
from pto_wsp.types import scalar as s
from pto_wsp.types.view import print_view

Pair: TypeAlias = tuple[s.Scalar, s.Scalar]


def extent_checks(task: Submit, kernel: Kernel, arguments: Sequence[Described], access: Sequence[ParamAccess]) -> tuple[Check, ...]:
    """Return the checks of a task: extents that its kernel takes for numbers are those, extents that it takes for equal are so."""
    found: dict[Check, None] = {}

    def check(value: s.Scalar, wanted: s.Scalar, at: int) -> None:
        subject, param = print_view(task.places[at].view), kernel.memory_params[at].name
        found[Check(CheckKind.TILE, value, wanted, wanted, subject, param, task.span)] = None

    for at, (described, one) in enumerate(zip(arguments, access, strict=True)):
        for dim, (known, first) in enumerate(((one.rows, one.row_group), (one.cols, one.col_group))):
            extent = described.extents[dim]
            if known is not None and not isinstance(extent, s.Const):
                check(extent, s.Const(known), at)
            if first is not None:
                same = arguments[first].extents[dim]
                dims = _differing_dims(extent, same)      # no loop changes them: they are compared once
                for value, wanted in ((extent, same),) if dims is None else dims:
                    check(value, wanted, at)
    made = {(check.value, check.lower, check.upper) for check in task.checks}
    return tuple(check for check in found if (check.value, check.lower, check.upper) not in made)


def _differing_dims(one: s.Scalar, other: s.Scalar) -> tuple[Pair, ...] | None:
    """Return the dimensions of tensors in which two scalars differ: where those are equal, they are. None where they differ otherwise.

    >>> _differing_dims(minimum(sub(DimOf(y, 0), i), Const(16)), minimum(sub(DimOf(x, 0), i), Const(16)))
    ((DimOf(y, 0), DimOf(x, 0)),)
    """
    match one, other:
        case _ if one == other:
            return ()
        case s.DimOf(), s.DimOf():
            return ((one, other),)
        case (s.Unary(op), s.Unary(same)) | (s.Binary(op), s.Binary(same)) if op is same:
            inside = [_differing_dims(*pair) for pair in zip(s.children(one), s.children(other), strict=True)]
            known = [pairs for pairs in inside if pairs is not None]
            return tuple(pair for pairs in known for pair in pairs) if len(known) == len(inside) else None
        case _:
            return None
