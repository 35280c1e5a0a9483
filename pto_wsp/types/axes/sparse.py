"""`Sparse`: the chosen columns of each row, as a matrix in CSR form has them.

>>> routing = Sparse(batch, indptr, indices)     # row b has the columns indices[indptr[b]:indptr[b + 1]]
"""

from __future__ import annotations

from typing import NoReturn

from pto_wsp.errors import WorkloadStructureError
from pto_wsp.source import here
from pto_wsp.types import scalar as s
from pto_wsp.types.axes.dense import DenseAxis, DenseDyn, OuterAxis
from pto_wsp.types.axes.ragged import IndexArray, index_tensor
from pto_wsp.types.layout import Contract
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.symbolic import Symbolic, as_scalar
from pto_wsp.types.tensor import Tensor
from pto_wsp.values import dataclass


class Sparse:
    """`Sparse(outer, indptr, indices)`: `routing[b]` is the axis of the columns of row b, in the order in which they are stored.

    Shapes: `indptr` is a rank-1 integer Tensor (or array, wrapped without a copy) with one entry more than `outer` has positions,
    `indices` one with as many entries as there are columns in all rows. `indptr` never falls; the columns of a row ascend.
    """

    __slots__ = ("indices", "indptr", "outer")

    def __init__(self, outer: OuterAxis, indptr: IndexArray, indices: IndexArray) -> None:
        if not isinstance(outer, DenseAxis | DenseDyn):
            raise WorkloadStructureError("the outer axis of Sparse is Dense or DenseDyn", here(), found=repr(outer))
        self.outer = outer
        self.indptr = index_tensor("Sparse", "indptr", indptr, 1)
        self.indices = index_tensor("Sparse", "indices", indices, 1)
        entries = self.indptr.ref.shape[0]
        if isinstance(outer, DenseAxis) and entries != outer.extent + 1:     # the extent of a DenseDyn is known when it is bound
            raise WorkloadStructureError("Sparse takes one indptr a row and one behind the last", here(),
                                         expected=f"{outer.extent + 1} entries, for {outer.extent} rows", found=str(entries))
        self.indptr.promise(Contract.MONOTONE)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """What a run binds: indptr and indices."""
        return self.indptr, self.indices

    @property
    def roles(self) -> tuple[str, ...]:
        """What each of the tensors is for."""
        return "indptr", "indices"

    def __getitem__(self, position: object) -> SparseRow:
        node = as_scalar(position)
        if isinstance(node, s.Const) and node.value < 0:      # from the end: the last row lies between the last two entries
            return SparseRow(self, self.indptr.item(int(node.value) - 1).node, self.indptr.item(int(node.value)).node)
        return SparseRow(self, self.indptr.item(position).node, self.indptr.item(Symbolic(s.add(node, s.Const(1)))).node)

    def __repr__(self) -> str:
        return f"Sparse({self.outer!r}, {self.indptr.ref.shown}, {self.indices.ref.shown})"


@dataclass(frozen=True, slots=True, eq=False)
class SparseRow:
    """The axis of one row's columns: positions `start` .. `stop` - 1 of the indices."""

    sparse: Sparse
    start: s.Scalar
    stop: s.Scalar


class Column(Symbolic):
    """A column of a sparse row, as a loop gives it. `position`: where it stands in the indices, and so where its value stands."""

    __slots__ = ("_position",)

    def __init__(self, column: s.Var, position: s.Var, holds: tuple[object, ...]) -> None:
        super().__init__(column, holds)
        self._position = Symbolic(position)

    @property
    def position(self) -> Symbolic:
        """Where the column stands in the indices."""
        return self._position

    def __iter__(self) -> NoReturn:
        raise WorkloadStructureError("a sparse row has one variable, its column", here(), found=f"{self!r} unpacked",
                                     help=f"{print_scalar(self.node)}.position is where it stands in the indices; for b, e in P(routing) "
                                          "walks the rows, too")
