"""Define the tensor level: a function on whole arrays, as statements on arrays of any rank.

An operation reads views of arrays and defines new arrays, which never change. State (`tt.zeros`) and InOut parameters change by `Put`.
Control stands in the tree of `ir.flow`: `Sequence`, `Do`, `Loop`, `Choice`. Operations have the names and the meaning of the op table: they
work on the last dimension (`rowsum`), on the last two (`matmul`, `transpose`, `colsum`), or element by element; leading dimensions run
along, and broadcast as NumPy's. Any other axis is brought there by a view. Reductions keep their dimension, with extent 1.

    normed = div(x, rowsum_1)          Do(Apply("div", (ArrayView(x), ArrayView(rowsum_1)), (normed,)))
    acc[0:4] = v                       Do(Put(ArrayView(acc, (Cut(0, 0, 4),)), ArrayView(v)))

Operations that no kernel has, since a kernel has no such arrays:
`take` (source, table): source[table] along the first dimension. `rows_of` (table; attribute n): the places of 0 … n - 1 in the flattened
table, rising, and their n + 1 starts; as a third result, where each place stands among them. `arange` (start, step), `full` (number) and
`random` (seed, first, a stride for each dimension: an element is drawn at the place first + i * stride + ...): their shape is the result's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import ceil, floor, inf
from typing import Any, TypeAlias

from pto_wsp import doors
from pto_wsp.ir import flow
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.extents import simplified
from pto_wsp.ir.intervals import Interval, interval
from pto_wsp.ir.layout import Contract, TensorRef
from pto_wsp.ir.scalar import Binary, Const, Op, Scalar, SymbolRef, Var, ceil_div, elements_in, minimum, sub
from pto_wsp.ir.view import Cut, Permute, Pick
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import Derived, dataclass

Extents: TypeAlias = tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """An array of the function: a parameter, a constant, state of the body, or the result of an operation.

    `name` is that of the user's variable, and unique in the function. Extents are scalars of the function's symbols, and, of an array that
    a loop's body makes, of loop variables and of elements of arrays.
    """

    id: int
    name: str
    shape: Extents
    dtype: DType
    contracts: tuple[Contract, ...] = ()

    def __hash__(self) -> int:
        return self.id      # unique in the function, and hashed with every view

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def ref(self) -> TensorRef:
        """The array as scalars name it that read an element: `Element(array.ref, index)`. Extents that are no numbers count as 0 there."""
        extents = tuple(int(n.value) if isinstance(n, Const) else 0 for n in self.shape)
        return TensorRef(self.id, extents, self.dtype, self.name, contracts=self.contracts)


@dataclass(frozen=True, slots=True)
class Insert:
    """Add a dimension of extent 1 before dimension `dim`."""

    dim: int


@dataclass(frozen=True, slots=True)
class Flip:
    """Reverse dimension `dim`."""

    dim: int


@dataclass(frozen=True, slots=True)
class Refold:
    """Give the elements, row by row, another shape of as many elements."""

    shape: Extents


@dataclass(frozen=True, slots=True)
class TileCut:
    """Take the positions start … start + size - 1 of dimension `dim` that exist: passes cut axes into tiles, and the last may be short."""

    dim: int
    start: Scalar
    size: int


ArrayStep: TypeAlias = Pick | Cut | Permute | Insert | Flip | Refold | TileCut


class _OfView(Derived):
    """What follows from the fields of a view: its extents, the scalars of its steps, and its hash."""

    __slots__ = ("hashed", "scalars", "shape")
    hashed: int
    scalars: tuple[Scalar, ...]
    shape: Extents


@dataclass(frozen=True, slots=True)
class ArrayView(_OfView):
    """A part of an array, read or written when its statement runs. Slices are inside: 0 <= start <= stop <= extent, by construction.

    `shape`: the extents of the view; `scalars`: the scalars of its steps.
    """

    array: Array
    steps: tuple[ArrayStep, ...] = ()

    def __hash__(self) -> int:
        return self.hashed

    def _find_hashed(self) -> int:
        return hash((self.array.id, self.steps))

    def _find_scalars(self) -> tuple[Scalar, ...]:
        return tuple([one for step in self.steps for one in step_scalars(step)]) if self.steps else ()

    def _find_shape(self) -> Extents:
        if not self.steps:
            return self.array.shape
        shape = list(self.array.shape)
        for step in self.steps:
            match step:
                case Pick(dim, _):
                    del shape[dim]
                case Cut(dim, start, stop, by):
                    span = span_of(start, stop)
                    shape[dim] = span if by == 1 else ceil_div(span, Const(by))
                case Permute(order):
                    shape = [shape[k] for k in order]
                case Insert(dim):
                    shape.insert(dim, Const(1))
                case Refold(extents):
                    shape = list(extents)
                case TileCut(dim, start, size):
                    shape[dim] = minimum(Const(size), sub(shape[dim], start))
                case Flip():
                    pass
        return tuple(shape)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        rank = self.array.rank
        for step in self.steps:
            match step:
                case Pick():
                    rank -= 1
                case Insert():
                    rank += 1
                case Refold(shape):
                    rank = len(shape)
                case _:
                    pass
        return rank

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self.array.dtype

    def then(self, *steps: ArrayStep) -> ArrayView:
        """Return the view of this view."""
        return ArrayView(self.array, self.steps + steps)


Operand: TypeAlias = ArrayView | Scalar      # a scalar takes the dtype of the arrays it meets


# -- statements --------------------------------------------------------------------------------------------------------
class _OfStatement(Derived):
    """What follows from the fields of a statement.

    `defines`: the arrays that it makes. `reads`: the views that it reads, the target of an addition in place among them; `views`: these,
    then the view that it writes. `scalars`: the indices, extents and numbers that it evaluates; `elements`: the ids of the arrays of which
    these scalars read an element.
    """

    __slots__ = ("defines", "elements", "reads", "scalars", "views")
    defines: tuple[Array, ...]
    elements: frozenset[int]
    reads: tuple[ArrayView, ...]
    scalars: tuple[Scalar, ...]
    views: tuple[ArrayView, ...]

    def _operands(self) -> tuple[Operand | None, ...]:
        return ()

    def _find_defines(self) -> tuple[Array, ...]:
        return ()

    def _find_reads(self) -> tuple[ArrayView, ...]:
        return tuple([one for one in self._operands() if isinstance(one, ArrayView)])

    def _find_views(self) -> tuple[ArrayView, ...]:
        return self.reads

    def _find_scalars(self) -> tuple[Scalar, ...]:
        found = [one for view in self.views for one in view.scalars]
        found += [one for one in self._operands() if one is not None and not isinstance(one, ArrayView)]
        found += [extent for array in self.defines for extent in array.shape]
        return tuple(found)

    def _find_elements(self) -> frozenset[int]:
        return elements_in(self.scalars)


@dataclass(frozen=True, slots=True)
class Apply(_OfStatement):
    """Define `results` as what the op gives for the operands. `group`: the name that `with tt.group(…)` gave, or ""."""

    op: str
    operands: tuple[Operand, ...]
    results: tuple[Array, ...]
    attrs: tuple[tuple[str, Any], ...] = ()
    group: str = ""
    span: Span = field(default=UNKNOWN, compare=False, repr=False)

    def _operands(self) -> tuple[Operand | None, ...]:
        return self.operands

    def _find_defines(self) -> tuple[Array, ...]:
        return self.results


@dataclass(frozen=True, slots=True)
class Make(_OfStatement):
    """Make state: a new array in each iteration of the body it stands in, of one number, or undefined (`fill` None)."""

    array: Array
    fill: int | float | bool | None
    span: Span = field(default=UNKNOWN, compare=False, repr=False)

    def _find_defines(self) -> tuple[Array, ...]:
        return (self.array,)


@dataclass(frozen=True, slots=True)
class Put(_OfStatement):
    """Write a value, which broadcasts, to a view of state or of an InOut parameter.

    With a table, the entries of which are places along the first dimension of the view: target[table] = value; `add`: np.add.at, in the
    order of the entries.
    """

    target: ArrayView
    value: Operand
    table: ArrayView | None = None
    add: bool = False
    group: str = ""
    span: Span = field(default=UNKNOWN, compare=False, repr=False)

    def _operands(self) -> tuple[Operand | None, ...]:
        return self.value, self.table, self.target if self.add else None

    def _find_views(self) -> tuple[ArrayView, ...]:
        return *self.reads, self.target


@dataclass(frozen=True, slots=True)
class Show(_OfStatement):
    """Print a view while the function runs, after a label."""

    label: str
    value: ArrayView
    group: str = ""
    span: Span = field(default=UNKNOWN, compare=False, repr=False)

    def _operands(self) -> tuple[Operand | None, ...]:
        return (self.value,)


Statement: TypeAlias = Apply | Make | Put | Show


@dataclass(frozen=True, slots=True)
class BodyNote:
    """What the tensor level adds to a loop or a choice: the group that `with tt.group(…)` names around it."""

    group: str = ""


Body: TypeAlias = flow.Sequence[Statement, BodyNote, TensorRef, TensorRef, TensorRef]
Item: TypeAlias = flow.Flow[Statement, BodyNote, TensorRef, TensorRef, TensorRef]


def nested_loops(loops: Sequence[tuple[Var, Scalar]], body: Body, span: Span, ordered: bool = False) -> Body:
    """Return a body inside loops from 0 to an extent, the first of the loops outermost."""
    for var, extent in reversed(loops):
        body = flow.Sequence((flow.Loop(var, Const(0), extent, Const(1), ordered, body, BodyNote(), span=span),))
    return body


# -- functions ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ArrayParam:
    """A parameter: its array, whether the function writes it, and how the user reaches it from the arguments: `layers.3.up`."""

    array: Array
    written: bool = False
    path: str = ""
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ArrayConstant:
    """An array that the body captured: its elements, row by row, as bytes of its dtype."""

    array: Array
    data: bytes


@dataclass(frozen=True, slots=True)
class Assumption:
    """A condition on symbols that the caller promises; each call checks it."""

    condition: Scalar
    span: Span = field(default=UNKNOWN, compare=False, repr=False)

    @property
    def bound(self) -> tuple[Scalar, int] | None:
        """The whole number that the condition bounds by a number, and its largest value; None for other conditions."""
        match self.condition:
            case Binary(Op.LE | Op.EQ, node, Const(most)) | Binary(Op.GE | Op.EQ, Const(most), node):
                return node, floor(most)
            case Binary(Op.LT, node, Const(most)) | Binary(Op.GT, Const(most), node):
                return node, ceil(most) - 1
            case _:
                return None


@dataclass(frozen=True, slots=True, repr=False)
class TensorFunction(doors.Displayed):
    """A traced function. `symbols`: the extents by name; `scalars`: the parameters that are numbers of a call."""

    name: str
    params: tuple[ArrayParam, ...]
    body: Body
    results: tuple[ArrayView, ...]
    symbols: tuple[SymbolRef, ...] = ()
    scalars: tuple[SymbolRef, ...] = ()
    constants: tuple[ArrayConstant, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)

    @property
    def bounds(self) -> dict[str, int]:
        """The largest numbers that symbols may be, by name, as `tt.assume` says."""
        bounds: dict[str, int] = {}
        for node, most in (one.bound for one in self.assumptions if one.bound is not None):
            if isinstance(node, SymbolRef):
                bounds[node.name] = min(most, bounds.get(node.name, most))
        return bounds

    def __str__(self) -> str:
        return str(doors.late_module("pto_wsp.passes.tensor.passes").function_text(self))

    def __repr__(self) -> str:
        params = ", ".join(param.array.name for param in self.params)
        return f"<function {self.name}({params[:80]}) on tensors: {sum(1 for _ in flow.leaves(self.body))} statements>"


def span_of(start: Scalar, stop: Scalar) -> Scalar:
    """Return the length of a slice, in a form from which `limit_of` gets the limit if there is one."""
    span = sub(stop, start)
    if isinstance(span, Const) or limit_of(span) is not None or not _adds_block(stop):
        return span
    shorter = simplified(span)
    return span if limit_of(shorter) is None else shorter


def _adds_block(stop: Scalar) -> bool:
    """Tell whether min(size, ...) is a term of a sum."""
    match stop:
        case Binary(Op.ADD, lhs, rhs):
            return _adds_block(lhs) or _adds_block(rhs)
        case Binary(Op.MIN, Const(), _):
            return True
        case _:
            return False


def limit_of(extent: Scalar) -> int | None:
    """Return the most that an extent can be, where it says so: a number, or the size of a block; None for another extent."""
    match extent:
        case Const(value):
            return int(value)
        case Binary(Op.MIN, Const(value), _):
            return int(value)
        case _:
            return None


def most_of(extent: Scalar, assumed: Callable[[Scalar], int | None]) -> int | None:
    """Return an upper bound of an extent from its expression and from promised bounds; None if there is none.

    `assumed`: the promised bound of an expression. Symbols are 0 or more, and extents of no positions 0.
    """
    def known(node: Scalar) -> Interval | None:
        limit = limit_of(node)
        most = assumed(node) if limit is None else limit
        return _of_symbols(node) if most is None else (interval(node, _of_symbols)[0], most)

    limit = limit_of(extent)
    if limit is not None or not isinstance(extent, Binary):      # most extents: there is nothing to combine
        return assumed(extent) if limit is None else limit
    most = interval(extent, known)[1]
    return None if most == inf else max(0, int(most))


def _of_symbols(node: Scalar) -> Interval | None:
    return (0, inf) if isinstance(node, SymbolRef) and node.dtype is None else None


def step_scalars(step: ArrayStep) -> tuple[Scalar, ...]:
    """Return the scalars of a step of a view."""
    match step:
        case Pick(_, index):
            return (index,)
        case Cut(_, start, stop):
            return (start, stop)
        case TileCut(_, start):
            return (start,)
        case Refold(shape):
            return shape
        case _:
            return ()
