"""Define the axes of loops: dense, ragged and sparse.

>>> Dense[4]()                               # an extent known when the workload is written
Dense[4]
>>> tokens = Ragged(batch, lens)             # tokens[b] has lens[b] positions
>>> pieces = Ragged(tokens, counts)          # pieces[b][t] has counts[b, t]
>>> routing = Sparse(batch, indptr, indices)     # CSR: row b has the columns indices[indptr[b]:indptr[b + 1]]

`DenseDyn` has an extent that each run may bind. `walk_of` returns how a loop iterates over a value of any of these kinds.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import field
from typing import NoReturn, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from pto_wsp.calls import user_call, user_calls
from pto_wsp.errors import AxisError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.layout import Contract
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Counted, Symbolic, as_scalar
from pto_wsp.ir.tensor import Tensor
from pto_wsp.source import here
from pto_wsp.values import dataclass

_ids = itertools.count(1 << 32)   # disjoint from the ids of Symbols


# -- dense -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DenseAxis(Counted):
    """Positions 0 .. extent-1, known when the workload is written."""

    extent: int

    @property
    def size(self) -> int:
        """The number of positions."""
        return self.extent

    def __repr__(self) -> str:
        return f"Dense[{self.extent}]"


class Dense:
    """`Dense[N]()`, or `Dense(N)`, is an axis of N positions."""

    def __class_getitem__(cls, extent: object) -> DenseOf:
        return _dense(extent)

    def __new__(cls, *args: object, **names: object) -> DenseAxis:  # type: ignore[misc]
        if len(args) != 1 or names:
            shown = (*map(repr, args), *(f"{name}={value!r}" for name, value in names.items()))
            raise AxisError("Dense needs its extent in brackets", here(), expected="Dense[4]()", found=f"Dense({', '.join(shown)})")
        return DenseAxis(_dense(args[0]).extent)


@dataclass(frozen=True, slots=True)
class DenseOf:
    """`Dense[N]`; calling it makes an axis."""

    extent: int

    def __call__(self) -> DenseAxis:
        return DenseAxis(self.extent)

    def __repr__(self) -> str:
        return f"Dense[{self.extent}]"


def _dense(extent: object) -> DenseOf:
    if isinstance(extent, Symbolic):
        raise AxisError("Dense takes a number", here(), found=repr(extent), help="DenseDyn(...) takes a Symbol")
    return DenseOf(whole_number(extent, "Dense[N]()"))


@user_calls()
class DenseDyn(Counted):
    """`DenseDyn(n)`: an axis whose extent a run may rebind; `n` is a Symbol, or the initial extent.

    >>> rows = DenseDyn(20)
    >>> P(ceildiv(rows, 4))              # follows the extent that a run binds, as rows.size // 4 + 1 does
    """

    __slots__ = ("extent",)

    def __init__(self, extent: int | Symbolic) -> None:
        if isinstance(extent, Symbolic):
            if not s.scalar_dtype(extent.node).is_integer:
                raise AxisError("DenseDyn(n) takes a whole number", here(), found=f"{extent!r}, which is none")
            self.extent: s.Scalar = extent.node
        else:
            self.extent = s.SymbolRef("", next(_ids), default=whole_number(extent, "DenseDyn(n)"))

    @property
    def size(self) -> Symbolic:
        """The number of positions in a run, as a scalar."""
        return Symbolic(self.extent)

    def __repr__(self) -> str:
        if isinstance(self.extent, s.SymbolRef) and self.extent.default is not None:
            return f"DenseDyn({self.extent.default})"
        return f"DenseDyn({print_scalar(self.extent)})"


OuterAxis: TypeAlias = DenseAxis | DenseDyn


def extent_of(axis: OuterAxis) -> s.Scalar:
    """Return the number of positions of an axis."""
    return s.Const(axis.extent) if isinstance(axis, DenseAxis) else axis.extent


def known_extent(axis: OuterAxis) -> int | None:
    """Return the number of positions of an axis, initial if it may be rebound; None for a Symbol's."""
    match extent_of(axis):
        case s.Const(value):
            return int(value)
        case s.SymbolRef(default=default):
            return default
        case _:
            return None


def whole_number(extent: object, where: str) -> int:
    """Return an integer >= 0.

    Raises: W106 for anything else.
    """
    fits = isinstance(extent, int | np.integer) and not isinstance(extent, bool)
    if not fits or not 0 <= int(extent) < 1 << 63:  # type: ignore[call-overload]
        raise AxisError(f"{where} takes a whole number >= 0 that fits 64 bits", here(), found=repr(extent))
    return int(extent)  # type: ignore[call-overload, no-any-return]


# -- ragged ------------------------------------------------------------------------------------------------------------
IndexArray: TypeAlias = "Tensor | np.ndarray[tuple[int, ...], np.dtype[np.integer]] | Sequence[int]"
Outer = TypeVar("Outer")


def _outer(given: Outer | DenseOf | int, where: str) -> Outer | DenseAxis:
    """Return the outer axis of an axis: a number is a Dense of that extent."""
    if isinstance(given, DenseOf):
        return given()
    return DenseAxis(whole_number(given, where)) if isinstance(given, int | np.integer) else given


@user_calls()
class Ragged:
    """`Ragged(outer, lengths)`: rows of different lengths; `ragged[b]` is the axis of row b. `outer`: an axis, or its extent.

    Shapes: `lengths` is a rank-1 integer Tensor (an array, wrapped without a copy, or a list) with one entry per position of `outer`. If
    `outer` is a `Ragged`, `ragged[b][t]` is the axis of row t of row b, and `lengths` has one more dimension, padded to the longest row;
    or it has rank 1 with the rows concatenated, and row b begins at `offsets[b]`.
    """

    __slots__ = ("lengths", "offsets", "outer")

    @user_call("Ragged", outer_size="outer")
    def __init__(self, outer: OuterAxis | Ragged | int, lengths: IndexArray, offsets: IndexArray | None = None) -> None:
        outer = _outer(outer, "Ragged(n, lengths)")
        if not isinstance(outer, DenseAxis | DenseDyn | Ragged):
            raise AxisError("the outer axis of Ragged is Dense, DenseDyn or Ragged", here(), found=repr(outer))
        depth = outer.depth + 1 if isinstance(outer, Ragged) else 1
        tensor = index_tensor("Ragged", "the lengths", lengths, depth if offsets is None else 1)
        if offsets is not None and depth != 2:
            raise AxisError("offsets= is for the rows of a Ragged of a Ragged", here(), found=f"an outer {outer!r}",
                            help="leave it out: lengths has one entry a position of the outer axis")
        self.outer = outer
        self.lengths = tensor
        self.offsets = None if offsets is None else index_tensor("Ragged", "the offsets", offsets, 1)
        counted = self.lengths if self.offsets is None else self.offsets
        if isinstance(self.first, DenseAxis) and not counted.sized_by_runs and counted.ref.shape[0] < self.first.extent:
            what = "a length" if self.offsets is None else "an offset"
            raise AxisError(f"Ragged needs {what} for each position of the outer axis", here(),
                            expected=f"{self.first.extent} {what.split()[1]}s", found=str(counted.ref.shape[0]))
        if self.offsets is not None:
            self.offsets.promise(Contract.MONOTONE)

    @property
    def depth(self) -> int:
        """The number of indices of a row."""
        return self.outer.depth + 1 if isinstance(self.outer, Ragged) else 1

    @property
    def first(self) -> OuterAxis:
        """The outermost axis."""
        return self.outer.first if isinstance(self.outer, Ragged) else self.outer

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that a run binds: those of the outer axis, the lengths, and the offsets, if any."""
        outer = self.outer.tensors if isinstance(self.outer, Ragged) else ()
        return (*outer, self.lengths, *(() if self.offsets is None else (self.offsets,)))

    @property
    def roles(self) -> tuple[str, ...]:
        """The role of each of the tensors."""
        outer = tuple(f"outer_{role}" for role in self.outer.roles) if isinstance(self.outer, Ragged) else ()
        return (*outer, "lengths", "offsets")[:len(self.tensors)]

    def __getitem__(self, position: object) -> RaggedRow | RaggedRows:
        return RaggedRows(self, ())[position]

    def __repr__(self) -> str:
        offsets = "" if self.offsets is None else f", offsets={self.offsets.ref.shown}"
        return f"Ragged({self.outer!r}, {self.lengths.ref.shown}{offsets})"


@dataclass(frozen=True, slots=True, eq=False)
class RaggedRows:
    """Rows of a nested `Ragged` with some indices given; `[t]` gives the next index."""

    ragged: Ragged
    index: tuple[object, ...]

    def __getitem__(self, position: object) -> RaggedRow | RaggedRows:
        ragged = self.ragged
        index = (*self.index, *(position if isinstance(position, tuple) else (position,)))
        if len(index) > ragged.depth:
            raise AxisError(f"{ragged!r} has {ragged.depth} indices to a row", here(), found=f"{len(index)} indices")
        if len(index) < ragged.depth:
            return RaggedRows(ragged, index)
        if ragged.offsets is None:
            return RaggedRow(ragged, ragged.lengths.item(*index).node)
        at = Symbolic(s.add(ragged.offsets.item(index[0]).node, as_scalar(index[1])))
        return RaggedRow(ragged, ragged.lengths.item(at).node)

    def __repr__(self) -> str:
        return f"{self.ragged!r}[{', '.join(print_scalar(as_scalar(position)) for position in self.index)}]"


@dataclass(frozen=True, slots=True, eq=False)
class RaggedRow(Counted):
    """The axis of one row of a `Ragged`."""

    ragged: Ragged
    extent: s.Scalar

    @property
    def size(self) -> Symbolic:
        """The length of the row, as a scalar."""
        return Symbolic(self.extent, self.ragged.tensors)


_wrapped: WeakValueDictionary[int, Tensor] = WeakValueDictionary()    # by id of the array, which the tensor keeps alive


def index_tensor(axis: str, what: str, given: object, rank: int) -> Tensor:
    """Return an integer tensor of an axis; arrays are wrapped without a copy, and axes of one array share a tensor.

    Raises: W106 for another rank or dtype.
    """
    if isinstance(given, Tensor):
        tensor = given
    elif isinstance(given, list | tuple | range):
        tensor = Tensor(_listed(axis, what, given))
    else:
        wrapper = _wrapped.get(id(given))
        if wrapper is None or wrapper.given is not given or wrapper.data is None or wrapper.data.shape != wrapper.ref.shape:
            wrapper = Tensor(given)
        tensor = _wrapped[id(given)] = wrapper
    if tensor.rank != rank or not tensor.dtype.is_integer:
        raise AxisError(f"{axis} takes {what} as a rank-{rank} integer tensor", here(),
                        found=f"rank {tensor.rank}, {tensor.dtype}")
    return tensor


def _listed(axis: str, what: str, given: Sequence[object]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return a list of whole numbers, or a list of such lists, as an array.

    Raises: W106 for anything else.
    """
    try:
        array = np.array(given) if len(given) else np.zeros(0, np.int64)
    except (ValueError, OverflowError):      # lists of several lengths
        array = np.zeros(())
    if array.dtype.kind != "i":
        raise AxisError(f"{axis} takes {what} as whole numbers", here(), found=f"{given!r:.60}", expected="a list such as [2, 0, 1]")
    return array.astype(np.int64)


# -- sparse ------------------------------------------------------------------------------------------------------------
@user_calls()
class Sparse:
    """`Sparse(outer, indptr, indices)`: `routing[b]` is the axis of the columns of row b, in storage order.

    `outer`: an axis, or its extent.
    Shapes: `indptr` is a rank-1 integer Tensor (an array, wrapped without a copy, or a list) with one entry more than `outer` has
    positions; `indices` has one entry for each column of all rows. `indptr` never decreases; the columns of a row ascend.
    """

    __slots__ = ("indices", "indptr", "outer")

    @user_call("Sparse", outer_size="outer")
    def __init__(self, outer: OuterAxis | int, indptr: IndexArray, indices: IndexArray) -> None:
        outer = _outer(outer, "Sparse(n, indptr, indices)")
        if not isinstance(outer, DenseAxis | DenseDyn):
            raise AxisError("the outer axis of Sparse is Dense or DenseDyn", here(), found=repr(outer))
        self.outer = outer
        self.indptr = index_tensor("Sparse", "indptr", indptr, 1)
        self.indices = index_tensor("Sparse", "indices", indices, 1)
        entries = self.indptr.ref.shape[0]
        fixed = isinstance(outer, DenseAxis) and not self.indptr.sized_by_runs     # a run knows the extents of others
        if isinstance(outer, DenseAxis) and fixed and entries != outer.extent + 1:
            raise AxisError("Sparse takes one indptr a row and one behind the last", here(),
                            expected=f"{outer.extent + 1} entries, for {outer.extent} rows", found=str(entries))
        self.indptr.promise(Contract.MONOTONE)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that a run binds: indptr and indices."""
        return self.indptr, self.indices

    @property
    def roles(self) -> tuple[str, ...]:
        """The role of each of the tensors."""
        return "indptr", "indices"

    def __getitem__(self, position: object) -> SparseRow:
        node = as_scalar(position)
        if isinstance(node, s.Const) and node.value < 0:      # counted from the end: the last row is between the last two entries
            return SparseRow(self, self.indptr.item(int(node.value) - 1).node, self.indptr.item(int(node.value)).node)
        return SparseRow(self, self.indptr.item(position).node, self.indptr.item(Symbolic(s.add(node, s.Const(1)))).node)

    def __repr__(self) -> str:
        return f"Sparse({self.outer!r}, {self.indptr.ref.shown}, {self.indices.ref.shown})"


@dataclass(frozen=True, slots=True, eq=False)
class SparseRow(Counted):
    """The axis of one row's columns: positions `start` .. `stop` - 1 of the indices."""

    sparse: Sparse
    start: s.Scalar
    stop: s.Scalar

    @property
    def size(self) -> Symbolic:
        """The number of the row's columns, as a scalar."""
        return Symbolic(s.sub(self.stop, self.start), self.sparse.tensors)


class Column(Symbolic):
    """A column of a sparse row, as a loop yields it. `position`: its position in the indices, and so in the array of values."""

    __slots__ = ("_position",)

    def __init__(self, column: s.Var, position: s.Var, holds: tuple[object, ...]) -> None:
        super().__init__(column, holds)
        self._position = Symbolic(position)

    @property
    def position(self) -> Symbolic:
        """The column's position in the indices."""
        return self._position

    def __iter__(self) -> NoReturn:
        raise AxisError("a sparse row has one variable, its column", here(), found=f"{self!r} unpacked",
                        help=f"{print_scalar(self.node)}.position is where it stands in the indices; for b, e in P(routing) "
                             "walks the rows, too")


# -- iteration over axes -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Walk:
    """How a loop iterates over an axis: start, stop, step, and the axis's label in types. `source`: the user's object, for its name.

    `tensors`: the axis's tensors, with their `roles`. `rows`: its total number of rows. `leads_to`: the loop runs over positions of this
    tensor, and the user's variable is the element at the position.
    """

    start: s.Scalar
    stop: s.Scalar
    step: s.Scalar
    label: str
    source: object = field(compare=False, repr=False, default=None)
    tensors: tuple[Tensor, ...] = ()
    roles: tuple[str, ...] = ()
    rows: s.Scalar | None = None
    leads_to: Tensor | None = None


def walk_of(axis: object) -> Walk:
    """Return how to loop over an axis.

    Raises: W106 for what is none.
    """
    zero, one = s.Const(0), s.Const(1)
    match axis:
        case DenseAxis(extent) | DenseOf(extent):
            return Walk(zero, s.Const(extent), one, repr(axis), axis)
        case Mesh():
            return Walk(zero, s.Const(axis.size), one, repr(axis), axis)
        case DenseDyn():
            return Walk(zero, axis.extent, one, "DenseDyn", axis)
        case RaggedRow(ragged, extent):
            return Walk(zero, extent, one, "Ragged", ragged, ragged.tensors, ragged.roles, extent_of(ragged.first))
        case SparseRow(sparse, start, stop):
            return Walk(start, stop, one, "Sparse", sparse, sparse.tensors, sparse.roles, extent_of(sparse.outer), sparse.indices)
        case range():
            if axis.step < 1:
                raise AxisError("a loop's range goes upwards", here(), found=repr(axis))
            if axis.start < -(1 << 63) or max(axis.start, axis.stop) - 1 + axis.step >= 1 << 63:
                raise AxisError("a loop's range does not fit 64 bits", here(), found=repr(axis),
                                expected="a start from -2**63 on, and a last number that a step leads from below 2**63")
            return Walk(s.Const(axis.start), s.Const(max(axis.start, axis.stop)), s.Const(axis.step), repr(axis), axis)
        case bool() | float() | str():
            pass
        case int() | np.integer():
            return Walk(zero, s.Const(whole_number(int(axis), "P(n)")), one, f"Dense[{int(axis)}]", axis)
        case Symbolic():
            if s.scalar_dtype(axis.node).is_integer:
                return Walk(zero, as_scalar(axis), one, print_scalar(axis.node), axis)
        case RaggedRows():
            raise AxisError("rows of rows are no axis yet", here(), found=repr(axis),
                            help="give one index more, e.g. rows[b][t]")
        case Ragged():
            raise AxisError("a Ragged axis is walked row by row", here(), found=repr(axis),
                            help="loop over the outer axis first: for b in P(batch): for i in P(ragged[b])")
        case Sparse():
            raise AxisError("a row of a Sparse is an axis, the whole is two", here(), found=repr(axis),
                            help="for b, e in P(sparse), or for b in P(batch): for e in P(sparse[b])")
        case _:
            pass
    raise AxisError("this is not an axis", here(), found=f"{type(axis).__name__}: {axis!r:.60}",
                    expected="Dense[N](), DenseDyn(n), a row of a Ragged or Sparse, a range, a whole number, or a scalar "
                             "expression")
