"""Spell an operation on arrays of any rank as a call on tiles.

Operands are brought into the folding that the operation needs, and what it sums or compares gets its identity in lanes that are not there.

    rowmax of [2, 16, n]       pto.rowmax(pto.where(pto.iota((1, 128), I32, 1) < n, score, -math.inf))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Protocol

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.extents import simplified
from pto_wsp.ir.scalar import Const, Op, Scalar, binary, mul
from pto_wsp.ir.tensor_function import Apply
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.entries import cast as casts
from pto_wsp.ops.entry import Finish, Operator
from pto_wsp.ops.spec import ColReduce, Convert, Elementwise, Expand, Matmul, RowReduce
from pto_wsp.ops.table import TABLE
from pto_wsp.ops.tensors import ARANGE, FULL, RANDOM, tail_of
from pto_wsp.ops.traits import Fill
from pto_wsp.ops.whole import TileFunction
from pto_wsp.passes.tensor.carried import carried_ops
from pto_wsp.passes.tensor.flatten import Dims, ExtentLimits, Folding, NoTile, ValueDim, matrices, usual
from pto_wsp.passes.tensor.scalar_text import number_text
from pto_wsp.passes.tensor.tile_values import Behind, KernelValue, refolded, shape_text
from pto_wsp.values import dataclass

_INFIX = frozenset("+-*/")
_MOST_JOINED = 32       # positions of an axis that are joined one by one


class KernelWriter(Protocol):
    """The methods of a kernel's printer that the text of an operation uses."""

    limits: ExtentLimits

    def scalar(self, node: Scalar, dtype: DType | None = None) -> str:
        """Return a scalar as text of the kernel."""
        ...

    def dtype(self, dtype: DType) -> str:
        """Return the name of a dtype."""
        ...

    def let(self, wanted: str, text: str) -> str:
        """Append a line that gives a value a name; return the name."""
        ...


@dataclass(frozen=True, slots=True)
class Spelled:
    """The result of an operation as a value. `before`, `behind`: text around its name if the call returns a tuple of several results."""

    value: KernelValue
    before: str = ""
    behind: str = ""


def spelled(writer: KernelWriter, statement: Apply, operands: Sequence[KernelValue | Scalar]) -> Spelled:
    """Return the call of an operation as a value.

    Raises: NoTile for what has no form on tiles.
    """
    dims = writer.limits.dims(statement.results[0].shape)
    dtype = statement.results[0].dtype
    entry = TABLE.get(statement.op)
    tiles = [operand for operand in operands if isinstance(operand, KernelValue)]
    match entry:
        case Elementwise() | Convert():
            folding = joint([tile.dims for tile in tiles], [tile.folding for tile in tiles], dims)
            fitted = [in_frame(one, dims, folding) if isinstance(one, KernelValue) else one for one in operands]
            texts = [one.text if isinstance(one, KernelValue) else writer.scalar(one) for one in fitted]
            if isinstance(entry, Elementwise) and isinstance(entry.c, Operator) and entry.c.text in _INFIX and len(texts) == 2 and tiles \
                    and not entry.option:
                sides = [text if isinstance(one, KernelValue) or entry.c.text == "+" else _factor(text)
                         for one, text in zip(fitted, texts, strict=True)]
                text = f"{sides[0]} {entry.c.text} {sides[1]}"
            else:
                text = _call(writer, statement, texts, tiles)
        case RowReduce() | ColReduce():
            by_row = isinstance(entry, RowReduce)
            (source,) = tiles
            if isinstance(entry, ColReduce) and any(dim.limit > 1 for dim in source.dims[:-2]):
                return Spelled(_joined(writer, entry, source, dims, dtype))
            folding = usual(len(source.dims)) if by_row else matrices(len(source.dims))
            text = _reduced(writer, entry, refolded(source, folding), len(source.dims) - (1 if by_row else 2), dtype)
        case Matmul():
            text, folding = _product(writer, tiles, dims)
        case Expand():
            text, folding = _expanded(writer, operands[0], dims, dtype)
        case _:
            if entry is None and not tiles:
                return _made(writer, statement, operands, dims, dtype)
            text, folding, before = _whole(writer, statement, tiles, dims)
            return Spelled(KernelValue(text, dims, folding, dtype), before)
    return Spelled(KernelValue(text, dims, folding, dtype))


# -- foldings ----------------------------------------------------------------------------------------------------------
def joint(operands: Sequence[Dims], foldings: Sequence[Folding], result: Dims) -> Folding:
    """Return the folding in which operands meet that broadcast to the dimensions of a result."""
    rank = len(result)
    full = [folding for dims, folding in zip(operands, foldings, strict=True)
            if len(dims) == rank and all(a.limit == b.limit for a, b in zip(dims, result, strict=True))]
    if len(full) == len(operands) and full and all(folding.tile_shape(result) == full[0].tile_shape(result) for folding in full):
        return full[0]
    first = 0
    second = max(rank - 1, 0)
    for at in range(second - 1, -1, -1):
        if not _alike(operands, result, range(at, second)):
            first = at + 1
            break
    return Folding(first, second)


def _alike(operands: Sequence[Dims], result: Dims, group: range) -> bool:
    """Tell whether each operand has all of a group of dimensions, or broadcasts along all of it."""
    for dims in operands:
        offset = len(result) - len(dims)
        present = {k - offset >= 0 and dims[k - offset].limit == result[k].limit for k in group if result[k].limit > 1}
        if len(present) > 1:
            return False
    return True


def in_frame(value: KernelValue, result: Dims, folding: Folding) -> KernelValue:
    """Return an operand as it meets a result of these dimensions in this folding."""
    missing = len(result) - len(value.dims)
    dims = (*(ValueDim(1, Const(1)) for _ in range(missing)), *value.dims)
    wide = replace(value, dims=dims, folding=Folding(value.folding.first + missing, value.folding.second + missing))
    made = refolded(wide, folding)
    leading = [k for k in range(folding.first) if result[k].limit > 1]
    own = [dims[k].limit for k in leading]
    if own and any(limit == 1 for limit in own) and any(limit > 1 for limit in own):
        while own and own[0] == 1:
            del own[0]
        shape = (*own, *made.tile_shape[-2:])
        if shape != made.tile_shape:
            made = replace(made, text=f"{made.text}.reshape{shape_text(shape)}")
    return made


# -- lanes that are not there ------------------------------------------------------------------------------------------
def masked(writer: KernelWriter, value: KernelValue, dim: int, fill: Fill) -> KernelValue:
    """Return a value with a number in the lanes of a dimension that are not there, among its rows or columns.

    Raises: NoTile where no number helps, and for a dimension that is neither rows nor columns.
    """
    one = value.dims[dim]
    if not one.short or fill is Fill.NONE or (fill is Fill.ZERO and value.behind is Behind.ZERO):
        return value
    if fill in (Fill.REFUSED, Fill.VALID) or dim < value.folding.first:
        raise NoTile("an axis that an operation needs whole, of which the last tile may be short", "let the axis be whole, of a known size")
    again = value.filled(number_text(fill.number(value.dtype)))
    if again is not None:
        return replace(again, behind=Behind.ANYTHING)
    rows = dim < value.folding.second
    group = range(value.folding.first, value.folding.second) if rows else range(value.folding.second, len(value.dims))
    lanes = prod(value.dims[k].limit for k in group)
    outer, inner = (prod(value.dims[k].limit for k in part) for part in (range(group.start, dim), range(dim + 1, group.stop)))
    places = f"pto.iota({(lanes, 1) if rows else (1, lanes)}, {writer.dtype(DType.I32)}, {0 if rows else 1})"
    there = mul(one.extent, Const(inner)) if outer == 1 else one.extent
    if outer > 1:
        places = f"{places} // {inner} % {one.limit}" if inner > 1 else f"{places} % {one.limit}"
    text = f"pto.where({places} < {writer.scalar(there)}, {value.text}, {number_text(fill.number(value.dtype))})"
    return replace(value, text=text, behind=Behind.ANYTHING)


def _reduced(writer: KernelWriter, entry: RowReduce | ColReduce, source: KernelValue, dim: int, dtype: DType) -> str:
    if not source.dims[dim].short:
        return f"pto.{entry.name}({source.text})"
    inside = masked(writer, source, dim, tail_of(entry.name, 0))
    if entry.finish is not Finish.DIVIDE_BY_COUNT:
        return f"pto.{entry.name}({inside.text})"
    sums = next(one for one in TABLE.values() if type(one) is type(entry) and isinstance(one, RowReduce | ColReduce)
                and one.identity is entry.identity and one.finish is Finish.NONE)
    count = _factor(writer.scalar(source.dims[dim].extent))
    if not dtype.is_half:
        return f"pto.{sums.name}({inside.text}) / {count}"
    wide = f"pto.{casts.cast.name}({inside.text}, {writer.dtype(DType.F32)})"
    return f"pto.{casts.cast.name}(pto.{sums.name}({wide}) / {count}, {writer.dtype(dtype)})"


def _joined(writer: KernelWriter, entry: ColReduce, source: KernelValue, dims: Dims, dtype: DType) -> KernelValue:
    """Return a reduction of a short axis between others: its positions lie side by side as columns, and are joined in order."""
    reduced, columns = source.dims[-2:]
    if reduced.short or reduced.limit > _MOST_JOINED:
        raise NoTile("a sum along an axis between others in one tile", "cut the axes before it into tiles of 1")
    flat = refolded(source, Folding(0, len(source.dims) - 2))
    text = flat.text
    if dtype.is_half:
        text = f"pto.{casts.cast.name}({text}, {writer.dtype(DType.F32)})"
    if not text.isidentifier():
        text = writer.let("beside", text)
    width = columns.limit
    parts = [f"{text}[:, {k * width}:{(k + 1) * width}]" for k in range(reduced.limit)]
    _, joined, _ = carried_ops(entry, dtype)
    total = parts[0]
    for one in parts[1:]:
        total = f"pto.{joined}({total}, {one})" if not _adds(joined) else f"{total} + {one}"
    if entry.finish is Finish.DIVIDE_BY_COUNT:
        total = f"({total}) / {reduced.limit}"
    if dtype.is_half:
        total = f"pto.{casts.cast.name}({total}, {writer.dtype(dtype)})"
    return KernelValue(total, dims, Folding(0, max(len(dims) - 2, 0)), dtype)


def _adds(name: str) -> bool:
    entry = TABLE[name]
    return isinstance(entry, Elementwise) and isinstance(entry.c, Operator) and entry.c.text == "+"


# -- kinds of operations -----------------------------------------------------------------------------------------------
def _call(writer: KernelWriter, statement: Apply, texts: Sequence[str], tiles: Sequence[KernelValue], of_stacks: bool = False) -> str:
    """Return the call of an operation of the table, or of another function of `pto`. `of_stacks`: an axis is counted from the last."""
    entry = TABLE.get(statement.op)
    attrs = {name: value for name, value in statement.attrs if name != "inside"}       # a kernel checks every place
    arguments: tuple[object, ...] = tuple(texts)
    if entry is not None:
        types = [TileType(prod(tile.tile_shape[:-1]), tile.tile_shape[-1], tile.dtype) for tile in tiles]
        arguments, named = entry.call_of(types, tuple(texts), tuple(attrs.items()))
        attrs = dict(named)
    written = [*map(str, arguments), *(f"{name}={_attr(writer, name, value, of_stacks)}" for name, value in attrs.items())]
    return f"pto.{statement.op}({', '.join(written)})"


def _attr(writer: KernelWriter, name: str, value: object, of_stacks: bool) -> str:
    if isinstance(value, DType):
        return writer.dtype(value)
    if name in ("axis", "dim") and isinstance(value, int):
        return str(value % 2 - 2 if of_stacks else value % 2)
    return number_text(value) if isinstance(value, float) else repr(value)


def _product(writer: KernelWriter, tiles: Sequence[KernelValue], dims: Dims) -> tuple[str, Folding]:
    lhs, rhs = tiles[:2]
    shared = all(dim.limit == 1 for dim in rhs.dims[:-2]) and len(tiles) == 2
    folding = usual(len(dims)) if shared else matrices(len(dims))
    left = refolded(lhs, usual(len(lhs.dims)) if shared else matrices(len(lhs.dims)))
    right = refolded(rhs, matrices(len(rhs.dims)))
    if lhs.dims[-1].short and not (left.behind is right.behind is Behind.ZERO):
        left = masked(writer, left, len(lhs.dims) - 1, tail_of(MATMUL.name, 0))
        right = masked(writer, right, len(rhs.dims) - 2, tail_of(MATMUL.name, 1))
    texts = [left.text, right.text, *(refolded(tile, matrices(len(tile.dims))).text for tile in tiles[2:])]
    atoms = [text if text.isidentifier() or " " not in text.split("(")[0] else f"({text})" for text in texts]
    return (f"{atoms[0]} @ {atoms[1]}" if len(atoms) == 2 else f"pto.{MATMUL.name}({', '.join(texts)})"), folding


MATMUL = next(entry for entry in TABLE.values() if isinstance(entry, Matmul))


def _expanded(writer: KernelWriter, operand: KernelValue | Scalar, dims: Dims, dtype: DType) -> tuple[str, Folding]:
    if not isinstance(operand, KernelValue):
        folding = usual(len(dims))
        return f"pto.full({shape_text(folding.tile_shape(dims))}, {writer.scalar(operand)}, {writer.dtype(dtype)})", folding
    folding = joint([operand.dims], [operand.folding], dims)
    source = in_frame(operand, dims, folding)
    shape = folding.tile_shape(dims)
    if len(shape) > 2:
        raise NoTile("a broadcast along an axis among others that are rows", "cut that axis into tiles of 1")
    return f"pto.expand({source.text}, {shape_text(shape)})", folding


def _made(writer: KernelWriter, statement: Apply, operands: Sequence[KernelValue | Scalar], dims: Dims, dtype: DType) -> Spelled:
    """Return the text of an op whose operands are numbers: `full` has one number, `arange` a start and a step."""
    folding = usual(len(dims))
    shape = folding.tile_shape(dims)
    given = [one for one in operands if not isinstance(one, KernelValue)]
    if statement.op not in (FULL, ARANGE, RANDOM) or len(shape) > 2:
        raise NoTile(f"`{statement.op}` in a kernel", "this form is not there yet")
    if statement.op == RANDOM:
        seed, first, *strides = given
        text = f"pto.random_at({_places(writer, dims, first, strides)}, {writer.scalar(seed)})"
    elif len(given) == 1:
        text = f"pto.full({shape_text(shape)}, {writer.scalar(given[0])}, {writer.dtype(dtype)})"
    else:
        start, step = map(writer.scalar, given)
        places = f"pto.iota({shape_text(shape)}, {writer.dtype(dtype)}, 1)"
        scaled = places if step == "1" else f"{places} * {_factor(step)}"
        text = scaled if start == "0" else f"{scaled} + {start}"
    return Spelled(KernelValue(text, dims, folding, dtype))


def _places(writer: KernelWriter, dims: Dims, first: Scalar, strides: Sequence[Scalar]) -> str:
    """Return, as a tile of all dimensions but the last as rows, the place of each element: first + i * strides[0] + ..., modulo 2^32."""
    rows, columns = prod(dim.limit for dim in dims[:-1]), dims[-1].limit if dims else 1
    u32 = writer.dtype(DType.U32)
    lanes: list[tuple[int, Scalar]] = []          # of the rows: extent and stride of dimensions, those that continue one another as one
    for dim, stride in zip(dims[:-1], strides, strict=False):
        if lanes and simplified(mul(stride, Const(dim.limit))) == lanes[-1][1]:
            lanes[-1] = lanes[-1][0] * dim.limit, stride
        elif dim.limit > 1:
            lanes.append((dim.limit, stride))
    terms = [_scaled(writer, f"pto.iota((1, {columns}), {u32}, 1)", strides[-1])] if columns > 1 else []
    inner = rows
    for k, (limit, stride) in enumerate(lanes):
        inner //= limit
        lane = f"pto.iota(({rows}, 1), {u32}, 0)" + (f" // {inner}" if inner > 1 else "") + (f" % {limit}" if k else "")
        terms.append(_scaled(writer, lane, stride))
    start = writer.scalar(_word(first))
    if not terms:
        return f"pto.full({(rows, columns)}, {start}, {u32})"
    return " + ".join([*terms, *([] if first == Const(0) else [start])])


def _scaled(writer: KernelWriter, lane: str, stride: Scalar) -> str:
    return lane if stride == Const(1) else f"{lane} * {_factor(writer.scalar(_word(stride)))}"


def _factor(text: str) -> str:
    """Return a scalar's text as it stands beside `*`: in parentheses where an operator is outside of any."""
    depth = 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == " " and depth == 0:
            return f"({text})"
    return text


def _word(node: Scalar) -> Scalar:
    """Return a whole number modulo 2^32."""
    return simplified(binary(Op.MOD, node, Const(1 << 32)))


def _whole(writer: KernelWriter, statement: Apply, tiles: Sequence[KernelValue], dims: Dims) -> tuple[str, Folding, str]:
    """Return the call of an operation that takes its last axis, or its last two, whole."""
    entry = TABLE.get(statement.op)
    leading = [tile.dims[:-1] for tile in tiles]
    alike = all([dim.limit for dim in one] == [dim.limit for dim in dims[:-1]] for one in leading)
    folded = [refolded(tile, usual(len(tile.dims)) if alike else matrices(len(tile.dims))) for tile in tiles]
    prepared = [_ready(writer, statement, place, tile) for place, tile in enumerate(folded)]
    folding = usual(len(dims)) if alike else matrices(len(dims))
    gives_two = isinstance(entry, TileFunction) and entry.gives_columns and entry.sorts and len(entry.signature.parameters) == 3
    of_stacks = any(len(tile.tile_shape) > 2 for tile in folded)
    return _call(writer, statement, [tile.text for tile in prepared], tiles, of_stacks), folding, "_, " if gives_two else ""


def _ready(writer: KernelWriter, statement: Apply, place: int, tile: KernelValue) -> KernelValue:
    """Return an operand with lanes that are not there behind all others in its order, and with places that are there in an index."""
    fill = tail_of(statement.op, place, statement.attrs)
    if place == 0:
        return masked(writer, tile, len(tile.dims) - 1, fill) if tile.dims else tile
    for dim in range(len(tile.dims)):
        tile = masked(writer, tile, dim, fill)
    return tile
