"""Build the run-time checks that keep a task inside its tensors and tiles, in evaluation order.

Shapes of tensors allocated in bodies are known at compile time, so their checks are folded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pto_wsp.ir import scalar as s
from pto_wsp.ir.kernel import MemoryParam, TileParam
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.mesh import OnRank
from pto_wsp.ir.plan import Check, CheckKind, Submit, TaskPlan
from pto_wsp.ir.plan_walk import dense_stride, map_submits, sizes_made
from pto_wsp.ir.rewrite import rewrite
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.view import Cut, Pick, Reshape, View, bounds_of, declared, place_of, print_view
from pto_wsp.source import Span


def view_checks(view: View, param: MemoryParam, span: Span) -> tuple[Check, ...]:
    """Return the checks of one view: every index inside its dimension, the extent at most the tile's."""
    checks: list[Check] = []
    text = print_view(view)
    for bound in bounds_of(view):
        checks.extend(element_checks(bound.value, span, param.name))
        checks.extend(element_checks(bound.upper, span, param.name))
        if not _trivial(bound.lower, bound.value, bound.upper):
            kind = CheckKind.RESHAPE if isinstance(view.steps[bound.step], Reshape) else CheckKind.INDEX
            checks.append(Check(kind, bound.value, bound.lower, bound.upper, _step_text(view, bound.step), param.name, span))
    if isinstance(param, TileParam):
        dims = place_of(view).dims
        for dim, extent in zip(dims, param.type.shape[2 - len(dims):], strict=True):
            if isinstance(dim.extent, s.Const) or _clipped(dim.extent, extent):
                continue
            fixed = isinstance(declared(dim.extent), s.Const)
            checks.append(Check(CheckKind.TILE, dim.extent, s.Const(extent if fixed else 0), s.Const(extent), text, param.name,
                               span))
    return tuple(dict.fromkeys(checks))


MAX_BYTES = 1 << 47    # of a tensor that a body makes: what an address space holds


def size_checks(tensor: TensorRef, sizes: Sequence[s.Scalar], span: Span) -> tuple[Check, ...]:
    """Return the checks of a tensor that a body makes: no extent below 0, and no more bytes than an address space has."""
    free = [size for size in sizes if not isinstance(size, s.Const)]
    most = MAX_BYTES // (tensor.dtype.nbytes * max(1, math.prod(int(size.value) for size in sizes if isinstance(size, s.Const))))
    top = min(most, 1 << 62 // max(1, len(free)))         # of each extent, so that their product does not wrap
    checks = [check for size in sizes for check in element_checks(size, span)]
    checks += [Check(CheckKind.SIZE, size, s.Const(0), s.Const(top), print_scalar(size), span=span) for size in free]
    if len(free) > 1:
        product: s.Scalar = s.Const(1)
        for size in free:
            product = s.mul(product, size)
        checks.append(Check(CheckKind.SIZE, product, s.Const(0), s.Const(most), tensor.shown, span=span))
    return tuple(checks)


def element_checks(node: s.Scalar, span: Span, param: str = "") -> tuple[Check, ...]:
    """Return the checks of every tensor element that a scalar expression reads, inner reads first."""
    return tuple(_element_checks(node, span, param))


def _element_checks(node: s.Scalar, span: Span, param: str) -> Iterator[Check]:
    for child in s.children(node):
        yield from _element_checks(child, span, param)
    if isinstance(node, s.Element):
        for dim, index in enumerate(node.index):
            top = s.sub(s.DimOf(node.tensor, dim), s.Const(1))
            yield Check(CheckKind.ELEMENT, index, s.Const(0), top, print_scalar(node), param, span)


def row_checks(on: OnRank, span: Span) -> tuple[Check, ...]:
    """Return the checks that a collective, whose first copy is on a rank, has no more rows than there is room for."""
    return tuple(check for limit in on.limits for check in (
        *element_checks(limit.rows, span), Check(CheckKind.ROWS, limit.rows, s.Const(0), s.Const(limit.most), limit.problem, span=span)))


def rank_checks(on: OnRank, span: Span) -> tuple[Check, ...]:
    """Return the checks that a task's ranks are ranks of the mesh; a rank that is a number, or a loop's own variable, is one."""
    last = s.Const(on.n_ranks - 1)
    said = dict.fromkeys(rank for rank in (on.rank, on.source) if rank is not None and not isinstance(rank, s.Const))
    return tuple(check for rank in said
                 for check in (*element_checks(rank, span), Check(CheckKind.RANK, rank, s.Const(0), last, print_scalar(rank), span=span)))


def _trivial(lower: s.Scalar, value: s.Scalar, upper: s.Scalar) -> bool:
    """Tell whether a check always holds, such as 0 <= 0 <= X.shape[0]: an extent is never negative."""
    above = value == lower
    return above and (value == upper or (isinstance(upper, s.DimOf) and value == s.Const(0)))


def _clipped(extent: s.Scalar, limit: int) -> bool:
    return isinstance(extent, s.Binary) and extent.op is s.Op.MIN and extent.rhs == s.Const(limit)


def _step_text(view: View, position: int) -> str:
    """Return the view up to and including the step of the check, as text."""
    steps = view.steps[:position + 1]
    whole = view.steps
    while len(steps) < len(whole) and isinstance(whole[len(steps)], Pick | Cut):   # X[b, t] reads better than X[b]
        steps = whole[:len(steps) + 1]
    return print_view(View(view.tensor, steps))


def with_constant_shapes(plan: TaskPlan) -> TaskPlan:
    """Return the plan with the extents and strides of tensors allocated in bodies as scalars, without the checks that then hold.

            check 0 <= i <= scratch.shape[0] - 1;  check 8 <= scratch.shape[1] <= 8    →    check 0 <= i <= 3
    """
    made = sizes_made(plan)

    def known(node: object) -> object | None:
        match node:
            case s.DimOf(tensor, dim) if tensor.id in made:
                return made[tensor.id][dim]
            case s.StrideOf(tensor, dim) if tensor.id in made:
                return dense_stride(made[tensor.id], dim)
            case s.Unary(op, value):
                return s.unary(op, value)
            case s.Binary(op, lhs, rhs):
                return s.binary(op, lhs, rhs)
            case _:
                return None

    def without(task: Submit) -> Submit:
        return replace(task, note=replace(task.note, checks=tuple(check for check in task.note.checks if not _always_holds(check))))

    return map_submits(replace(plan, body=rewrite(plan.body, known)), without) if made else plan


def _always_holds(check: Check) -> bool:
    match check.lower, check.value, check.upper:
        case s.Const(lower), s.Const(value), s.Const(upper):
            return lower <= value <= upper
        case _:
            return False
