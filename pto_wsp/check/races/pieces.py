"""Cut the access of a task into the pieces that its kernel touches.

A Tensor parameter is a region that a kernel reads and writes in pieces. Two tasks with one region may still touch different elements: each
stores a block at an offset of its own, or scatters rows to the entries of its own part of a table. `pieces_of` returns an access for each
load, store, gather and scatter of the kernel, with the loops of the kernel around it. A gather or scatter is a loop over the entries of its
index tile, around one row. An entry is a table's element where the kernel loads it from a parameter, so contracts of the table count.

>>> scatter_rows[t](x=X[t], rows=slots[16*t : 16*t + 16], out=Cache)
    for entry in range(16): Cache[slots[16*t + entry], 0:64]       # the piece of `out`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import TypeAlias

from pto_wsp.check.races.accesses import SiteAccess
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType, Family
from pto_wsp.ir.flow import Loop, Sequence
from pto_wsp.ir.kernel_walk import operand_types, result_of, valid_of, valid_rows_of, walk
from pto_wsp.ir.layout import Layout
from pto_wsp.ir.plan import Check, CheckKind, PlanLoop, Precondition, Submit, TaskPlan
from pto_wsp.ir.scalar import Const, Op, Scalar
from pto_wsp.ir.tile import TileType
from pto_wsp.ir.view import Clip, Cut, Permute, Pick, Reshape, Step, View, bounds_of, declared, place_of
from pto_wsp.ops.entries import cast as casting
from pto_wsp.ops.entries import create, elementwise, movement

MOST_PIECES = 64        # of one access; unrolled kernels with more keep their whole region

_FIRST_VARIABLE = -(1 << 33)     # ids of the variables of pieces, disjoint from those of a plan and of token numbers

Place: TypeAlias = tuple[Scalar, Scalar]     # row and column of a tile's element


def pieces_of(plan: TaskPlan, access: SiteAccess) -> tuple[SiteAccess, ...] | None:
    """Return the accesses of a task's kernel to one parameter, which together touch all that `access` may touch.

    None if the parameter is a tile, the kernel has a body of the user's own, or an offset or an index is computed in a way that is not
    followed.
    """
    task = access.statement
    if not isinstance(task, Submit) or access.by_workload:
        return None
    kernel = plan.kernels[task.kernel].kernel
    param = next(p for p in kernel.memory_params if p.name == access.param)
    if not isinstance(param, k.TensorParam) or kernel.bodies or len(place_of(access.view).dims) != 2:
        return None
    pieces: list[SiteAccess] = []
    try:
        for piece in _Pieces(kernel, task, access).of(kernel.body, ()):
            pieces.append(piece)
            if len(pieces) > MOST_PIECES:
                return None
    except _NotFollowed:
        return None
    return tuple(pieces)


def is_wrapped(piece: SiteAccess) -> bool:
    """Tell whether a row of a piece is computed in 32 bits, where numbers wrap."""
    indices = (index for step in piece.view.steps if isinstance(step, Pick | Cut)
               for index in ((step.index,) if isinstance(step, Pick) else (step.start, step.stop)))
    return any(_wraps(index) for index in indices)


def _wraps(node: Scalar) -> bool:
    return node == _ALL_OF_32_BITS or any(_wraps(part) for part in s.children(node))


_ALL_OF_32_BITS = Const(1 << 32)


class _NotFollowed(Exception):
    """A number of a kernel is not an expression over the workload."""


class _Pieces:
    """The walk over a kernel's body, for one parameter of one task."""

    def __init__(self, kernel: k.Kernel, task: Submit, access: SiteAccess) -> None:
        self.access = access
        self.made = {value.id: stmt for stmt in walk(kernel.body) if (value := result_of(stmt)) is not None}
        self.items: dict[Scalar, k.Item] = {stmt.item: stmt for stmt in walk(kernel.body) if isinstance(stmt, k.Item)}
        self.places = {param.name: place for param, place in zip(kernel.memory_params, task.places, strict=True)}
        self.scalars = {param.name: given for param, given in zip(kernel.scalar_params, task.scalars, strict=True)}
        self.tiles = {param.name for param in kernel.memory_params if isinstance(param, k.TileParam)}
        self.variables: dict[s.Var, s.Var] = {}

    def of(self, body: tuple[k.Stmt, ...], loops: tuple[PlanLoop, ...], certain: bool = True) -> Iterator[SiteAccess]:
        """Yield the pieces in a body; both branches of an `If` count. `certain`: the body runs in each iteration of the loops."""
        for stmt in body:
            match stmt:
                case k.For(var, start, stop, step, inner):
                    loop = self._loop(var.name, self.number(start), self.number(stop), self.number(step))
                    self.variables[var] = loop.var
                    yield from self.of(inner, (*loops, loop), certain)
                case k.If(_, then, other):
                    yield from self.of(then, loops, False)
                    yield from self.of(other, loops, False)
                case k.Rows(_, inner) | k.Columns(_, inner):
                    yield from self.of(inner, loops, certain)
                case k.Load() | k.Store() if stmt.param == self.access.param:
                    rows, cols = (self.number(extent) for extent in valid_of(stmt))
                    row, col = self.number(stmt.row), self.number(stmt.col)
                    role = k.Role.IN if isinstance(stmt, k.Load) else k.Role.OUT
                    yield self._piece(role, loops, certain and not _turns(rows, cols), _cut(0, row, rows), _cut(1, col, cols))
                case k.Gather() | k.Scatter() if stmt.param == self.access.param:
                    yield self._picked_rows(stmt, loops, certain)
                case _:
                    pass

    def _picked_rows(self, stmt: k.Gather | k.Scatter, loops: tuple[PlanLoop, ...], certain: bool) -> SiteAccess:
        """Return the access of one row for each entry of an index."""
        loop = self._loop("entry", Const(0), self.number(valid_rows_of(stmt)), Const(1))
        row, col = self.element(stmt.index, (loop.var, Const(0))), self.number(stmt.col)
        cols = stmt.result.type.cols if isinstance(stmt, k.Gather) else stmt.value.type.cols
        role = k.Role.IN if isinstance(stmt, k.Gather) else k.Role.INOUT if stmt.add else k.Role.OUT
        return self._piece(role, (*loops, loop), certain and not _turns(loop.stop), _cut(1, col, Const(cols)), Pick(0, row))

    def _piece(self, role: k.Role, loops: tuple[PlanLoop, ...], certain: bool, *steps: Step) -> SiteAccess:
        access = self.access
        piece = replace(access, role=role, view=View(access.view.tensor, (*access.view.steps, *steps)), levels=(*access.levels, *loops))
        return replace(piece, checks=(*piece.checks, *_corners(piece, len(access.view.steps), loops if certain else loops[:0])))

    def _loop(self, name: str, start: Scalar, stop: Scalar, step: Scalar) -> PlanLoop:
        var = s.Var(name, _FIRST_VARIABLE - len(self.variables))
        self.variables[var] = var
        return Loop(var, start, stop, step, False, Sequence(()), Precondition())

    # -- numbers -------------------------------------------------------------------------------------------------------

    def number(self, node: Scalar) -> Scalar:
        """Return a scalar of the kernel over the workload's variables."""
        return s.substitute(node, self._leaf)

    def _leaf(self, node: Scalar) -> Scalar | None:
        match node:
            case s.ParamScalar(name):
                return _held_as(self.scalars[name].value, self.scalars[name].dtype)
            case s.ItemRef() if node in self.items:
                item = self.items[node]
                return _held_as(self.element(item.value, (self.number(item.row), self.number(item.col))), node.dtype)
            case s.ParamExtent(name, dim):
                return self.places[name].extent[dim]
            case s.Var() if node in self.variables:
                return self.variables[node]
            case Const() | s.Unary() | s.Binary() | s.Select():
                return None
            case _:
                raise _NotFollowed

    def element(self, operand: k.Operand, at: Place) -> Scalar:
        """Return an element of a tile of whole numbers as a scalar over the workload's variables and tables.

        Raises: _NotFollowed if an operation on the way is not followed.
        """
        if isinstance(operand, k.ScalarOperand):
            return _held_as(self.number(operand.value), operand.dtype)
        stmt = self.made.get(operand.id)
        match stmt:
            case k.Load():
                return self._loaded(stmt, at)
            case k.Compute(op=movement.transpose.name, operands=(inner,)):
                return self.element(inner, (at[1], at[0]))
            case k.Compute(op=movement.reshape.name, operands=(inner,)):
                return self.element(inner, _same_place(stmt.result.type, operand_types(stmt)[0], at))
            case k.Compute(op=movement.slice_.name, operands=(inner,)):
                return self.element(inner, _sliced(stmt, at))
            case k.Compute(op=casting.cast.name, operands=(inner,)):
                return _held_as(self.element(inner, at), stmt.result.type.dtype)
            case k.Compute(op=create.expand.name, operands=(inner,)):
                return _held_as(self.element(inner, _repeated(operand_types(stmt)[0], at)), stmt.result.type.dtype)
            case k.Compute(op=create.iota.name, attrs=attrs):
                return _held_as(at[int(dict(attrs)["axis"] == 1)], stmt.result.type.dtype)
            case k.Compute(op=op) if op in _ARITHMETIC:
                parts = (self.element(part, _repeated(tile, at)) for part, tile in zip(stmt.operands, operand_types(stmt), strict=True))
                return _held_as(s.binary(_ARITHMETIC[op], *parts), stmt.result.type.dtype)
            case _:
                raise _NotFollowed

    def _loaded(self, load: k.Load, at: Place) -> Scalar:
        """Return an element of a parameter; the fill of the load stands outside what is bound."""
        place, tile = self.places[load.param], load.result.type
        if not tile.dtype.is_integer:
            raise _NotFollowed
        row, col = (at[1], at[0]) if load.transpose else at
        rows, cols = valid_of(load)
        shape = (tile.cols, tile.rows) if load.transpose else tile.shape
        here = s.add(self.number(load.row), row), s.add(self.number(load.col), col)
        held: Scalar = s.Element(place.view.tensor, element_index(place.view, here))
        limits = [(row, self.number(rows), shape[0]), (col, self.number(cols), shape[1])]
        if load.param in self.tiles:
            limits += [(where, extent, size) for where, extent, size in zip(here, place.extent, shape, strict=True)]
        for where, limit, size in limits:
            if limit != Const(size):
                held = s.select(s.binary(Op.LT, where, limit), held, Const(int(load.fill)))
        return held


def _corners(piece: SiteAccess, n_outside: int, loops: tuple[PlanLoop, ...]) -> Iterator[Check]:
    """Yield what holds of a piece in the first and the last iterations of its loops, if their bounds are the same in all iterations.

    A task ends at the first piece that lies outside of its region, so a task that passes its checks has all pieces inside.
    """
    if any(_turns(loop.start, loop.stop) for loop in loops):
        return
    ends = [((loop.var, loop.start), (loop.var, s.sub(loop.stop, Const(1)))) for loop in loops[-_MOST_LOOPS:] if loop.step == Const(1)]
    for corner in product(*ends) if ends else ():
        at_corner: dict[Scalar, Scalar] = dict(corner)
        for bound in bounds_of(piece.view):
            if bound.step >= n_outside:
                value, lower, upper = (_put(node, at_corner) for node in (bound.value, bound.lower, bound.upper))
                yield Check(CheckKind.INDEX, value, lower, upper, "")


def _put(node: Scalar, numbers: Mapping[Scalar, Scalar]) -> Scalar:
    def change(inner: Scalar) -> Scalar | None:
        return numbers.get(inner)
    return s.substitute(node, change)


def _turns(*nodes: Scalar) -> bool:
    """Tell whether a number may differ between iterations of a kernel's loops."""
    return any(isinstance(leaf, s.Var) and leaf.id <= _FIRST_VARIABLE for node in nodes for leaf in s.leaves(node))


_MOST_LOOPS = 3      # whose corners count

_ARITHMETIC: Mapping[str, Op] = {
    elementwise.add.name: Op.ADD, elementwise.sub.name: Op.SUB, elementwise.mul.name: Op.MUL, elementwise.floordiv.name: Op.FLOORDIV,
    elementwise.mod.name: Op.MOD}


def element_index(view: View, place: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """Return the index in its tensor of an element of a view; a view of one dimension is one row."""
    dims = place_of(view).dims
    at = list(place[-len(dims):])
    for position in reversed(range(len(view.steps))):
        match view.steps[position]:
            case Pick(dim, index):
                at.insert(dim, index)
            case Cut(dim, start, _, by):
                at[dim] = s.add(start, s.mul(at[dim], Const(by)))
            case Clip():
                pass
            case Permute(order):
                at = [at[order.index(dim)] for dim in range(len(order))]
            case Reshape(shape):
                before = place_of(View(view.tensor, view.steps[:position])).dims
                at = list(_unravelled(_linear(tuple(at), shape), tuple(_size(dim.extent) for dim in before)))
    return tuple(at)


def _linear(at: tuple[Scalar, ...], shape: tuple[int, ...]) -> Scalar:
    total: Scalar = Const(0)
    for index, stride in zip(at, Layout.contiguous(shape).strides, strict=True):
        total = s.add(total, s.mul(index, Const(stride)))
    return total


def _unravelled(number: Scalar, shape: tuple[int, ...]) -> Iterator[Scalar]:
    """Yield the index of the element `number` of a contiguous array."""
    for dim, size in enumerate(shape):
        stride = prod(shape[dim + 1:])
        whole = number if stride == 1 else s.binary(Op.FLOORDIV, number, Const(stride))
        yield Const(0) if size == 1 else whole if dim == 0 else s.binary(Op.MOD, whole, Const(size))


def _size(extent: Scalar) -> int:
    """Return the declared extent of a dimension that is reshaped: a run keeps the extent equal to the declared one."""
    known = declared(extent)
    if not isinstance(known, Const):
        raise _NotFollowed
    return int(known.value)


def _same_place(new: TileType, old: TileType, at: Place) -> Place:
    """Return the place in the operand of a reshape."""
    row, col = _unravelled(_linear(at, new.shape), old.shape)
    return row, col


def _repeated(tile: TileType, at: Place) -> Place:
    """Return the place in an operand that broadcasts."""
    return at[0] if tile.rows > 1 else Const(0), at[1] if tile.cols > 1 else Const(0)


def _sliced(stmt: k.Compute, at: Place) -> Place:
    attrs = dict(stmt.attrs)
    starts: list[Scalar] = []
    for name, where in zip(("rows", "cols"), at, strict=True):
        part = attrs[name]
        if not isinstance(part, tuple):
            raise _NotFollowed
        first, _, step = part
        starts.append(s.add(Const(first), s.mul(where, Const(step))))
    return starts[0], starts[1]


def _cut(dim: int, start: Scalar, length: Scalar) -> Cut:
    return Cut(dim, start, s.add(start, length), 1)


def _held_as(value: Scalar, dtype: DType) -> Scalar:
    """Return a whole number as a dtype holds it: numbers of fewer than 64 bits wrap."""
    known = _range_of(value)
    if not dtype.is_integer or not s.scalar_dtype(value).is_integer:
        raise _NotFollowed
    if known is not None and dtype.holds(known[0]) and dtype.holds(known[1]):
        return value
    if dtype.exceeds_i64:
        raise _NotFollowed
    if dtype.nbytes == 8:
        return value
    size = 1 << 8 * dtype.nbytes
    least = 0 if dtype.family is Family.UINT else -(size // 2)
    return s.add(s.binary(Op.MOD, s.sub(value, Const(least)), Const(size)), Const(least))


def _range_of(value: Scalar) -> tuple[int, int] | None:
    """Return the least and the largest number of an element or a constant; None for other scalars."""
    match value:
        case Const(number) if not isinstance(number, float):
            return int(number), int(number)
        case s.Element(tensor) if tensor.dtype.is_integer:
            bits = 8 * tensor.dtype.nbytes
            return (0, (1 << bits) - 1) if tensor.dtype.family is Family.UINT else (-(1 << bits - 1), (1 << bits - 1) - 1)
        case s.Select(_, then, other):
            sides = _range_of(then), _range_of(other)
            return None if sides[0] is None or sides[1] is None else (min(sides[0][0], sides[1][0]), max(sides[0][1], sides[1][1]))
        case _:
            return None
