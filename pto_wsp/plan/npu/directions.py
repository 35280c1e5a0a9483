"""Which way each tensor of a package goes: only in, only out, or both, so that the runtime copies what it must and no more.

A tensor that tasks only write goes out; where some of it might stay unwritten it goes in as well, or the device would hand back what
happened to lie in its memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pto_wsp.expr.kernel import Kernel, Role, Store, TileParam
from pto_wsp.plan.npu.model import Descriptor, NpuKernel, NpuPlan, Repeat, Window
from pto_wsp.plan.npu.tiles.touches import linear
from pto_wsp.plan.npu.walk import Around, launches_within
from pto_wsp.types import scalar as s
from pto_wsp.types.layout import TensorRef
from pto_wsp.types.view import declared


def tensor_directions(plan: NpuPlan) -> tuple[Role, ...]:
    """Return the direction of each tensor that the plan's package is given, in order."""
    return tuple(_direction(plan, number) for number, slot in enumerate(plan.tensors) if not slot.allocated)


def _direction(plan: NpuPlan, number: int) -> Role:
    slot = plan.tensors[number]
    if not slot.writes:
        return Role.IN
    if slot.reads or slot.scalars:
        return Role.INOUT
    whole = any(_covers(found, plan.kernels[launch.kernel], position, slot.ref, around)
                for launch, around in launches_within(plan.body)
                for position, found in enumerate(launch.arguments) if isinstance(found, Descriptor) and found.slot == number)
    return Role.OUT if whole else Role.INOUT


def _covers(found: Descriptor, use: NpuKernel, position: int, ref: TensorRef, around: tuple[Around, ...]) -> bool:
    """Tell whether the turns of the loops around a launch surely write every element of a tensor. A way of a fork may not be taken."""
    access = use.access[position]
    loops = tuple(one for one in around if isinstance(one, Repeat))
    if len(loops) < len(around):
        return False
    if not _stores_all(use.kernel, position) or access.row_step != 1 or access.col_step != 1:     # steps leave elements out
        return False
    if not found.steps:
        return all(_constant(loop.start) is not None and _turns(loop) for loop in loops)
    if len(found.steps) != 1 or not isinstance(found.steps[0], Window):
        return False
    turned = {loop.var: loop for loop in loops}
    window, used = found.steps[0], set[s.Var]()
    for offset, shape, extent in zip(window.offset, window.shape, ref.shape, strict=True):
        tiles = _tiled(declared(offset), declared(shape), extent, turned)
        if tiles is None or tiles & used:
            return False
        used |= tiles
    return all(_turns(loop) for var, loop in turned.items() if var not in used)


def _stores_all(kernel: Kernel, position: int) -> bool:
    """Tell whether a kernel writes a Tile parameter whole, whatever happens."""
    param = kernel.memory_params[position]
    return isinstance(param, TileParam) and any(
        isinstance(stmt, Store) and stmt.param == param.name and stmt.row == s.Const(0) and stmt.col == s.Const(0)
        and stmt.valid_rows is None and stmt.valid_cols is None and stmt.value.type.shape == param.type.shape for stmt in kernel.body)


def _tiled(offset: s.Scalar, shape: s.Scalar, extent: int, loops: Mapping[s.Var, Repeat]) -> frozenset[s.Var] | None:
    """Return the loop variables by which windows along one dimension cover its extent, None where that is not plain."""
    size = _constant(shape)
    if offset == s.Const(0) and size == extent:
        return frozenset()
    match offset:
        case s.Var():
            var, step = offset, 1
        case s.Binary(s.Op.MUL, s.Var() as var, s.Const(value)):
            step = int(value)
        case _:
            return None
    if size is None:
        limits = tuple(_limits(shape))
        size = min((int(limit.value) for limit in limits if isinstance(limit, s.Const)), default=0)
        if not all(isinstance(limit, s.Const) or _reaches(s.add(offset, limit), extent) for limit in limits):
            return None     # at most `size`, and fewer not only where the tensor ends
    loop = loops.get(var)
    if loop is None or size < step or step < 1 or loop.start != s.Const(0) or loop.step != s.Const(1):
        return None
    stop = _constant(declared(loop.stop))
    return frozenset({var}) if stop is not None and stop * step >= extent else None


def _limits(node: s.Scalar) -> Iterator[s.Scalar]:
    """Yield what a number is the least of."""
    match node:
        case s.Binary(s.Op.MIN, one, other):
            yield from _limits(one)
            yield from _limits(other)
        case _:
            yield node


def _reaches(end: s.Scalar, extent: int) -> bool:
    """Tell whether a sum is a number that is not below the extent, whatever its variables."""
    found = linear(end, {})
    return found is not None and not found.terms and found.number >= extent


def _turns(loop: Repeat) -> bool:
    """Tell whether a loop surely runs at least once."""
    start, stop = _constant(declared(loop.start)), _constant(declared(loop.stop))
    return start is not None and stop is not None and stop > start


def _constant(node: s.Scalar) -> int | None:
    return int(node.value) if isinstance(node, s.Const) else None
