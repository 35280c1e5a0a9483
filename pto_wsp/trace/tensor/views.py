"""Read and write parts of tensors: the brackets of `x[item]` and `x[item] = value`, for a body on whole tensors.

Slices clip as NumPy's, those of symbols too: what the IR holds lies inside by construction. One table of places a subscript is read by
`take` and written by a Put with a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np

from pto_wsp.errors import ExtentError, MixedDTypeError, TableWriteError, TensorIndexError, TensorWriteError, ViewBoundsError
from pto_wsp.ir import scalar as s
from pto_wsp.ir import tensor_function as tf
from pto_wsp.ir.exchange import is_array
from pto_wsp.ir.extents import difference, product, simplified
from pto_wsp.ir.indexing import MAX_RANK, whole_number
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.scalar import Const, Element, Op, Scalar, print_scalar
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.ops.entries.compare import where
from pto_wsp.ops.tensors import TAKE
from pto_wsp.source import here
from pto_wsp.trace.tensor.trace import TensorTrace
from pto_wsp.trace.tensor.value import ArrayRole, TakenCopy, TensorValue, contracts_of
from pto_wsp.values import dataclass

Item: TypeAlias = object
_EXPECTED = "whole numbers, slices, None, ... and one table of places"


@dataclass(frozen=True, slots=True)
class PartOfTensor:
    """What brackets name: a view, and perhaps a table of places along dimension `dim` of it. `ahead`: its dimensions come first."""

    view: TensorValue
    table: TensorValue | None = None
    dim: int = 0
    ahead: bool = False


def index(trace: TensorTrace, value: TensorValue, item: Item) -> Any:
    """Return `value[item]`: a view, a copy by a table, or an element of whole numbers as a scalar.

    Raises: J202, T301 for what is no part of the tensor.
    """
    trace.check_read(value)
    part = _part(trace, value, item)
    if part.table is None:
        return as_scalar_of(trace, part.view) if part.view.rank == 0 and value.rank else part.view
    if part.table.dtype.is_bool:
        raise TensorIndexError("a mask picks a number of elements that only data knows", here(), expected="x[mask] = number, to write",
                               found=f"x[{part.table!r}]", help="np.where(mask, x, 0) keeps the shape; tt.rows_of(table, n) groups places")
    return taken_by(trace, part)


def as_scalar_of(trace: TensorTrace, value: TensorValue) -> Any:
    """Return an element: of whole numbers and masks a scalar, of floats a tensor of rank 0."""
    if not (value.dtype.is_integer or value.dtype.is_bool) or value.storage.kind is ArrayRole.CONSTANT:
        return value
    held = TakenCopy("an element", value.storage, trace.blocks.innermost.id)
    return Symbolic(trace.only_element(value), (held, value.storage))


def taken_by(trace: TensorTrace, part: PartOfTensor) -> TensorValue:
    """Return the copy that a table reads of a view."""
    source, table, dim = part.view, part.table, part.dim
    assert table is not None
    front = source.then(Permute((dim, *(k for k in range(source.rank) if k != dim)))) if dim else source
    if table.rank + source.rank - 1 > MAX_RANK:
        raise TensorIndexError(f"the result has more than {MAX_RANK} dimensions", here(), found=repr(table))
    rows = table
    if table.rank > 1 and not isinstance(table.extents[-1], Const):      # a tile of the table may be short in one dimension alone
        rows = table.then(tf.Refold((simplified(product(table.extents)),)))
    made = _taken_rows(trace, front, rows)
    if rows is not table:
        shaped = trace.state((*table.extents, *front.extents[1:]), source.dtype, None, what=TAKE)
        put(trace, shaped, made.then(tf.Refold(shaped.extents)))
        made = shaped
    if dim == 0 or part.ahead:
        return made
    order = (*range(table.rank, table.rank + dim), *range(table.rank), *range(table.rank + dim, made.rank))
    return made.then(Permute(order))


def _taken_rows(trace: TensorTrace, source: TensorValue, table: TensorValue) -> TensorValue:
    """Return source[table] along the first dimension. Positions of three and more fixed dimensions are taken as one row each: tasks bind
    tiles of rows that lie one behind the other, and a part of such a position does not.
    """
    inner, whole = source.extents[1:], source.storage.array.shape
    n_outer = len(whole) - len(inner)
    shape = (*table.extents, *inner)
    if len(inner) < 3 or n_outer < 1 or not all(isinstance(extent, Const) for extent in inner) or not _leaves(source, len(inner)):
        return trace.apply(TAKE, (source, table), shape, source.dtype)
    width = product(inner)
    rows = TensorValue(source.trace, source.storage, (tf.Refold((*whole[:n_outer], width)), *source.steps), source.taken)
    return trace.apply(TAKE, (rows, table), (*table.extents, width), source.dtype).then(tf.Refold(shape))


def _leaves(value: TensorValue, n: int) -> bool:
    """Tell whether no step of a view touches the last `n` dimensions."""
    rank = value.storage.array.rank
    for step in value.steps:
        if not isinstance(step, Pick | Cut) or step.dim >= rank - n:
            return False
        rank -= isinstance(step, Pick)
    return True


# -- brackets ----------------------------------------------------------------------------------------------------------

def _part(trace: TensorTrace, value: TensorValue, item: Item) -> PartOfTensor:
    items = list(item) if isinstance(item, tuple) else [item]
    used = [each for each in items if each is not None and not isinstance(each, EllipsisType)]
    tables = [each for each in used if is_table(each)]
    n_dots = sum(isinstance(each, EllipsisType) for each in items)
    width = sum(each.rank if isinstance(each, TensorValue) and each.dtype.is_bool else 1 for each in used)
    if n_dots > 1 or width > value.rank or len(tables) > 1:
        why = "two tables" if len(tables) > 1 else "more indices than dimensions" if width > value.rank else "two ..."
        raise TensorIndexError(f"`{value.name}` is indexed by {why}", here(), expected=_EXPECTED, found=_shown(items),
                               help="np.take_along_axis(x, places, axis) takes element by element" if len(tables) > 1
                               else f"it has {value.rank} dimension{'s' * (value.rank != 1)}")
    if n_dots == 0:
        items.append(Ellipsis)
    view, dim = value, 0
    table: TensorValue | None = None
    table_dim, ahead, places = 0, False, list[str]()       # in `places` what stands there, without gaps: "t" table, "i" number, "-" other
    for each in items:
        if isinstance(each, EllipsisType):
            skipped = value.rank - width
            dim += skipped
            if skipped or each is not items[-1]:
                places.append("-")
        elif each is None:
            view, dim = view.then(tf.Insert(dim)), dim + 1
            places.append("-")
        elif isinstance(each, slice):
            view, dim = cut(trace, view, dim, each), dim + 1
            places.append("-")
        elif is_table(each):
            table, table_dim = _table(trace, each), dim
            if table.dtype.is_bool and (width != value.rank or table.rank != value.rank):
                raise TensorIndexError("a mask has the shape of the tensor", here(), expected=repr(value), found=repr(table),
                                       help="np.where(mask, x, 0) keeps the shape; x[tt.rows_of(table, n)[e]] has the rows that chose e")
            dim += 1
            places.append("t")
        else:
            view = pick(trace, view, dim, each)
            places.append("i")
    ahead = table is not None and "-" in "".join(places).strip("-")       # numbers and table apart: NumPy has the table's dimensions first
    return PartOfTensor(view, table, table_dim, ahead)


def is_table(value: object) -> bool:
    """Tell whether an index is a table of places: a tensor, an array or a list."""
    if isinstance(value, TensorValue):
        return value.rank > 0 or not value.dtype.is_integer
    return isinstance(value, list) or (is_array(value) and getattr(value, "shape", ()) != ())


def _table(trace: TensorTrace, given: object) -> TensorValue:
    table = trace.value("an index", np.asarray(given, np.int32) if isinstance(given, list) and given else given)
    if not (table.dtype.is_integer or table.dtype.is_bool):
        raise TensorIndexError("a table of places holds whole numbers", here(), expected="any integer dtype", found=repr(table),
                               help="table.astype(DType.I32)")
    return table


def pick(trace: TensorTrace, view: TensorValue, dim: int, given: object) -> TensorValue:
    """Return one position of a dimension, without the dimension.

    Raises: T301 for a constant outside, J202 for what is no index.
    """
    extent = view.extents[dim]
    if isinstance(given, bool | str | float) or not (isinstance(given, Symbolic | TensorValue) or whole_number(given) is not None):
        raise TensorIndexError(f"`{view.name}` is indexed by what is no index", here(), expected=_EXPECTED, found=repr(given))
    node = trace.whole("an index", given)
    if isinstance(node, Const):
        number = int(node.value)
        inside = number if number >= 0 else None
        if isinstance(extent, Const):
            length = int(extent.value)
            if not -length <= number < length:
                raise ViewBoundsError(f"`{view.name}` has no position {number} along dimension {dim}", here(),
                                      expected=f"{-length} .. {length - 1}" if length else "no position at all", found=str(number))
            inside = number % length
        at: Scalar = Const(inside) if inside is not None else simplified(s.add(extent, node))
    else:
        at = node
        apart = difference(node, extent)
        if apart is not None and apart >= 0:
            raise ViewBoundsError(f"`{view.name}` has no position {print_scalar(node)} along dimension {dim}", here(),
                                  expected=f"0 .. {print_scalar(extent)} - 1", found=print_scalar(node))
    return view.then(Pick(dim, at))


def cut(trace: TensorTrace, view: TensorValue, dim: int, part: slice) -> TensorValue:
    """Return a slice of a dimension, clipped to what is there.

    Raises: J202 for a step that is no constant, or 0.
    """
    extent = view.extents[dim]
    step = 1 if part.step is None else whole_number(part.step)
    if step is None or step == 0:
        raise TensorIndexError("the step of a slice is a whole number, and not 0", here(), expected="a constant", found=repr(part.step))
    if part.start is None and part.stop is None and step == 1:
        return view
    start = None if part.start is None else trace.whole("the start of a slice", part.start)
    stop = None if part.stop is None else trace.whole("the stop of a slice", part.stop)
    if isinstance(extent, Const) and all(bound is None or isinstance(bound, Const) for bound in (start, stop)):
        first, behind, by = slice(_int(start), _int(stop), step).indices(int(extent.value))
        count = len(range(first, behind, by))
        least, most = (first, first + (count - 1) * by + 1) if by > 0 else (first + (count - 1) * by, first + 1)
        if count == 0:
            least, most = 0, 0
        whole = (least, most, abs(by)) == (0, extent.value, 1)
        made = view if whole else view.then(Cut(dim, Const(least), Const(most), abs(by) if count > 1 else 1))
        return made.then(tf.Flip(dim)) if by < 0 else made
    if step < 0:
        if start is None and stop is None:
            turned = view.then(tf.Flip(dim))
            return turned if step == -1 else turned.then(Cut(dim, Const(0), extent, -step))
        raise TensorIndexError("a slice with a negative step has constant bounds, of an extent that is a number", here(),
                               expected="x[::-1], or x[a:b][::-1]", found=_shown([part]))
    low: Scalar = Const(0) if start is None else _clipped(trace, _from_end(start, extent), extent)
    if stop is None:
        return view.then(Cut(dim, low, extent, step)) if (low, step) != (Const(0), 1) else view
    high = _end(trace, low, _from_end(stop, extent), extent, start, stop)
    trace.facts.naturals.add(simplified(s.sub(high, low)))
    return view.then(Cut(dim, low, high, step))


def _int(node: Scalar | None) -> int | None:
    return int(node.value) if isinstance(node, Const) else None


def _from_end(bound: Scalar, extent: Scalar) -> Scalar:
    return s.add(extent, bound) if isinstance(bound, Const) and bound.value < 0 else bound


def _clipped(trace: TensorTrace, bound: Scalar, extent: Scalar) -> Scalar:
    """Return a bound within 0 … extent."""
    if not trace.facts.is_natural(bound):
        bound = s.maximum(bound, Const(0))
    return simplified(bound) if trace.facts.is_at_most(bound, extent) else s.minimum(bound, extent)


def _end(trace: TensorTrace, low: Scalar, high: Scalar, extent: Scalar, start: Scalar | None, stop: Scalar) -> Scalar:
    """Return the end of a slice, not before its start. A block `start : start + c` that may be short ends at start + min(c, rest)."""
    length = difference(high, low)
    apart = None if length is not None or start is None or not trace.facts.is_natural(start) else difference(stop, start)
    if apart is not None and apart >= 0:
        return s.add(low, Const(apart) if trace.facts.is_at_most(stop, extent) else s.minimum(Const(apart), s.sub(extent, low)))
    if length is not None and length >= 0:
        if trace.facts.is_at_most(high, extent):
            return simplified(high)
        return s.add(low, s.minimum(Const(length), s.sub(extent, low)))
    inside = _clipped(trace, high, extent)
    if start is not None and (most := _most_apart(stop, start)) is not None and most > 0:
        # clipping brings ends no further apart
        rest = s.sub(inside if trace.facts.is_at_most(low, inside) else s.maximum(low, inside), low)
        return s.add(low, s.minimum(Const(most), rest))
    rising = isinstance(start, Element) and isinstance(stop, Element) and start.tensor.id == stop.tensor.id \
        and Contract.MONOTONE in start.tensor.contracts and start.index[:-1] == stop.index[:-1] \
        and (difference(stop.index[-1], start.index[-1]) or 0) > 0
    return inside if rising or trace.facts.is_at_most(low, inside) else s.maximum(low, inside)


def _most_apart(high: Scalar, low: Scalar) -> int | None:
    """Return the upper bound of high - low that the two expressions give; None if they give no bound.

    i * 16 and min(i * 16 + 16, n) are 16 apart at most.
    """
    most = tf.limit_of(simplified(s.sub(high, low)))
    if most is not None:
        return most
    match high:
        case s.Binary(Op.MIN | Op.MAX as op, lhs, rhs):
            return _both(_most_apart(lhs, low), _most_apart(rhs, low), needed=op is Op.MAX)
    match low:
        case s.Binary(Op.MIN | Op.MAX as op, lhs, rhs):
            return _both(_most_apart(high, lhs), _most_apart(high, rhs), needed=op is Op.MIN)
    return None


def _both(one: int | None, other: int | None, *, needed: bool) -> int | None:
    """Return the larger of two bounds if both are needed, else the smaller one that is there."""
    if one is None or other is None:
        return None if needed else other if one is None else one
    return max(one, other) if needed else min(one, other)


def _shown(items: Sequence[object]) -> str:
    def one(each: object) -> str:
        match each:
            case slice():
                bounds = [("" if bound is None else one(bound)) for bound in (each.start, each.stop, each.step)]
                return ":".join(bounds if each.step is not None else bounds[:2])
            case EllipsisType():
                return "..."
            case Symbolic():
                return print_scalar(each.node)
            case _:
                return repr(each)
    return f"[{', '.join(map(one, items))}]"


# -- writes ------------------------------------------------------------------------------------------------------------

def assign(trace: TensorTrace, value: TensorValue, item: Item, new: object) -> None:
    """Write `value[item] = new`.

    Raises: J102 for what may not be written, J107 for a table that may name a place twice, J201 and T203 for a value that does not fit.
    """
    trace.check_read(value)
    part = _part(trace, value, item)
    if isinstance(new, TensorValue) and part.table is None and new.storage is value.storage and new.array_view == part.view.array_view:
        return          # x[i] += v has written through the view already
    check_writable(value)
    if part.table is not None and part.table.dtype.is_bool:
        if isinstance(new, TensorValue):
            raise TensorIndexError("a mask is written with one number", here(), expected="x[mask] = number", found=repr(new),
                                   help="x[:] = np.where(mask, new, x)")
        put(trace, part.view, where(part.table, new, part.view))
        return
    if part.table is None:
        put(trace, part.view, new)
        return
    if Contract.INJECTIVE not in contracts_of(part.table):
        raise TableWriteError("a table may name a place twice: which of the writes stays is not said", here(), found=repr(part.table),
                              expected="an Injective table: declared, of rows_of, arange or argsort, or these shifted by a number",
                              help="np.add.at(x, table, value) adds, in the order of the entries")
    put_by_table(trace, part, new, add=False)


def check_writable(value: TensorValue) -> None:
    """Check that a body may write a value.

    Raises: J102.
    """
    if value.taken:
        what = value.taken[0].what
        raise TensorWriteError(f"{what} is a value of its own, whether NumPy copies or not", here(),
                               expected="a view, or state of tt.zeros",
                               found=repr(value), also=[("taken", value.taken[0].span)],
                               help=f"write `{value.taken[0].storage.array.name}` itself, or a copy in state")
    if any(isinstance(step, tf.Flip) for step in value.steps):
        raise TensorWriteError("a slice with a negative step is only read", here(), expected="a step >= 1", found=repr(value),
                               help="write np.flip(value, axis) to the slice with a positive step")
    if value.readonly or not value.storage.writable:
        kind = "an In parameter" if value.readonly or value.storage.kind is ArrayRole.READ else "a constant"
        raise TensorWriteError(f"`{value.name}` is {kind}, which is only read", here(), found=repr(value),
                               expected="state of tt.zeros, a value that the body made, or an InOut parameter",
                               help=f"x = x + 1 makes a new tensor; InOut[...] declares a parameter that is written: `{value.name}`"
                               if kind == "an In parameter" else None)


def put(trace: TensorTrace, target: TensorValue, new: object) -> None:
    """Append a write of a value, which broadcasts, to a view."""
    value = fitting(trace, f"`{target.name}[...] =`", new, target)
    if isinstance(value, TensorValue):
        value = _trimmed(value, target.rank)
        shape = trace.joined_shapes(f"`{target.name}[...] =`", [(repr(target), target.extents), (repr(value), value.extents)])
        if len(shape) > target.rank or not all(trace.facts.are_same(a, b) for a, b in zip(shape, target.extents, strict=True)):
            raise ExtentError(f"`{target.name}[...] =`: the value is larger than the part", here(), expected=repr(target),
                              found=repr(value))
        value = _apart(trace, value, target)
    _append(trace, target, value, None, False)


def _trimmed(value: TensorValue, rank: int) -> TensorValue:
    """Return a value without the leading dimensions of extent 1 that NumPy drops where it assigns."""
    while value.rank > rank and value.extents[0] == Const(1):
        value = value.then(Pick(0, Const(0)))
    return value


def _apart(trace: TensorTrace, value: TensorValue, target: TensorValue) -> TensorValue:
    """Return a value that is no view of the target's array: a copy of one that is."""
    if value.storage is not target.storage:
        return value
    copy = trace.state(value.extents, value.dtype, None, name=f"{value.name}.copy")
    trace.blocks.append(tf.Put(copy.array_view, value.array_view, None, False, trace.group, here()))
    return copy


def put_by_table(trace: TensorTrace, part: PartOfTensor, new: object, *, add: bool) -> None:
    """Append a write of a value to the places of a table, or an addition there in the order of its entries."""
    target, table, dim = part.view, part.table, part.dim
    assert table is not None
    front = target.then(Permute((dim, *(k for k in range(target.rank) if k != dim)))) if dim else target
    shape = (*table.extents, *front.extents[1:])
    value = fitting(trace, f"`{target.name}[table] =`", new, target)
    if isinstance(value, TensorValue):
        if dim and not part.ahead:        # the table's dimensions stand in the middle of the value
            written = (*front.extents[1:dim + 1], *table.extents, *front.extents[dim + 1:])
            while value.rank < len(written):
                value = value.then(tf.Insert(0))
            order = (*range(dim, dim + table.rank), *range(dim), *range(dim + table.rank, value.rank))
            value = value.then(Permute(order))
        value = _trimmed(value, len(shape))
        joined = trace.joined_shapes(f"`{target.name}[table] =`", [(_shown_shape(shape), shape), (repr(value), value.extents)])
        if len(joined) > len(shape) or not all(trace.facts.are_same(a, b) for a, b in zip(joined, shape, strict=True)):
            raise ExtentError(f"`{target.name}[table] =`: the value is larger than the places", here(), expected=_shown_shape(shape),
                              found=repr(value))
        value = _apart(trace, value, target)
    _append(trace, front, value, table, add)


def add_at(trace: TensorTrace, value: TensorValue, item: Item, new: object) -> None:
    """Trace `np.add.at(value, item, new)`."""
    trace.check_read(value)
    part = _part(trace, value, item)
    check_writable(value)
    if part.table is None:
        put(trace, part.view, part.view + new)
    elif part.table.dtype.is_bool:
        raise TensorIndexError("np.add.at takes a table of places", here(), expected="whole numbers", found=repr(part.table))
    else:
        put_by_table(trace, part, new, add=True)


def fitting(trace: TensorTrace, where_: str, new: object, target: TensorValue) -> TensorValue | Scalar:
    """Return what is written in the dtype of the target.

    Raises: T203 for another dtype.
    """
    if isinstance(new, TensorValue) or (is_array(new) and getattr(new, "shape", ()) != ()):
        value = trace.value(where_, new)
        if value.dtype is not target.dtype:
            raise MixedDTypeError(f"{where_}: a value of another dtype", here(), expected=str(target.dtype), found=repr(value),
                                  help=f"convert it: .astype({target.dtype!r})")
        return value
    return trace.weak(where_, new, target.dtype)


def _append(trace: TensorTrace, target: TensorValue, value: TensorValue | Scalar, table: TensorValue | None, add: bool) -> None:
    storage = target.storage
    trace.blocks.append(tf.Put(target.array_view, value.array_view if isinstance(value, TensorValue) else value,
                               None if table is None else table.array_view, add, trace.group, here()))
    storage.version += 1
    if storage.kind is ArrayRole.RESULT:
        storage.promoted = True
    trace.blocks.innermost.written.add(storage)


def _shown_shape(shape: tf.Extents) -> str:
    return f"[{', '.join(map(print_scalar, shape))}]"
