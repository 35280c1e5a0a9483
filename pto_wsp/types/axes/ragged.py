"""`Ragged`: rows of different lengths, of an axis or of another `Ragged`.

>>> tokens = Ragged(batch, lens)             # tokens[b] has lens[b] positions
>>> pieces = Ragged(tokens, counts)          # pieces[b][t] has counts[b, t]
"""

from __future__ import annotations

from typing import TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from pto_wsp.errors import WorkloadStructureError
from pto_wsp.source import here
from pto_wsp.types import scalar as s
from pto_wsp.types.axes.dense import DenseAxis, DenseDyn, OuterAxis
from pto_wsp.types.layout import Contract
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.symbolic import Symbolic, as_scalar
from pto_wsp.types.tensor import Tensor
from pto_wsp.values import dataclass

IndexArray: TypeAlias = "Tensor | np.ndarray[tuple[int, ...], np.dtype[np.integer]]"


class Ragged:
    """`Ragged(outer, lengths)`: rows of different lengths; `ragged[b]` is the axis of row b.

    Shapes: `lengths` is a rank-1 integer Tensor (or array, wrapped without a copy) with one entry a position of `outer`. Of an outer
    `Ragged`, `ragged[b][t]` is the axis of row t of row b: `lengths` has a dimension more, padded to the longest row; or it is rank 1
    with the rows one after the other, and row b begins at `offsets[b]`.
    """

    __slots__ = ("lengths", "offsets", "outer")

    def __init__(self, outer: OuterAxis | Ragged, lengths: IndexArray, offsets: IndexArray | None = None) -> None:
        if not isinstance(outer, DenseAxis | DenseDyn | Ragged):
            raise WorkloadStructureError("the outer axis of Ragged is Dense, DenseDyn or Ragged", here(), found=repr(outer))
        depth = outer.depth + 1 if isinstance(outer, Ragged) else 1
        tensor = index_tensor("Ragged", "the lengths", lengths, depth if offsets is None else 1)
        if offsets is not None and depth != 2:
            raise WorkloadStructureError("offsets= is for the rows of a Ragged of a Ragged", here(), found=f"an outer {outer!r}",
                                         help="leave it out: lengths has one entry a position of the outer axis")
        self.outer = outer
        self.lengths = tensor
        self.offsets = None if offsets is None else index_tensor("Ragged", "the offsets", offsets, 1)
        counted = self.lengths if self.offsets is None else self.offsets
        if isinstance(self.first, DenseAxis) and counted.ref.shape[0] < self.first.extent:
            what = "a length" if self.offsets is None else "an offset"
            raise WorkloadStructureError(f"Ragged needs {what} for each position of the outer axis", here(),
                                         expected=f"{self.first.extent} {what.split()[1]}s", found=str(counted.ref.shape[0]))
        if self.offsets is not None:
            self.offsets.promise(Contract.MONOTONE)

    @property
    def depth(self) -> int:
        """How many indices lead to one row."""
        return self.outer.depth + 1 if isinstance(self.outer, Ragged) else 1

    @property
    def first(self) -> OuterAxis:
        """The outermost axis."""
        return self.outer.first if isinstance(self.outer, Ragged) else self.outer

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """What a run binds: the tensors of the outer axis, the lengths, and the offsets where there are any."""
        outer = self.outer.tensors if isinstance(self.outer, Ragged) else ()
        return (*outer, self.lengths, *(() if self.offsets is None else (self.offsets,)))

    @property
    def roles(self) -> tuple[str, ...]:
        """What each of the tensors is for."""
        outer = tuple(f"outer_{role}" for role in self.outer.roles) if isinstance(self.outer, Ragged) else ()
        return (*outer, "lengths", "offsets")[:len(self.tensors)]

    def __getitem__(self, position: object) -> RaggedRow | RaggedRows:
        return RaggedRows(self, ())[position]

    def __repr__(self) -> str:
        offsets = "" if self.offsets is None else f", offsets={self.offsets.ref.shown}"
        return f"Ragged({self.outer!r}, {self.lengths.ref.shown}{offsets})"


@dataclass(frozen=True, slots=True, eq=False)
class RaggedRows:
    """Rows of a `Ragged` of a `Ragged`, some indices given: `[t]` gives the next."""

    ragged: Ragged
    index: tuple[object, ...]

    def __getitem__(self, position: object) -> RaggedRow | RaggedRows:
        ragged = self.ragged
        index = (*self.index, *(position if isinstance(position, tuple) else (position,)))
        if len(index) > ragged.depth:
            raise WorkloadStructureError(f"{ragged!r} has {ragged.depth} indices to a row", here(), found=f"{len(index)} indices")
        if len(index) < ragged.depth:
            return RaggedRows(ragged, index)
        if ragged.offsets is None:
            return RaggedRow(ragged, ragged.lengths.item(*index).node)
        at = Symbolic(s.add(ragged.offsets.item(index[0]).node, as_scalar(index[1])))
        return RaggedRow(ragged, ragged.lengths.item(at).node)

    def __repr__(self) -> str:
        return f"{self.ragged!r}[{', '.join(print_scalar(as_scalar(position)) for position in self.index)}]"


@dataclass(frozen=True, slots=True, eq=False)
class RaggedRow:
    """The axis of one row of a `Ragged`."""

    ragged: Ragged
    extent: s.Scalar


_wrapped: WeakValueDictionary[int, Tensor] = WeakValueDictionary()    # by the id of the array, which its tensor keeps alive


def index_tensor(axis: str, what: str, given: object, rank: int) -> Tensor:
    """Return an integer tensor of an axis, wrapping an array without a copy: axes made of one array share a tensor.

    Raises: W102 for another rank or dtype.
    """
    if isinstance(given, Tensor):
        tensor = given
    else:
        known = _wrapped.get(id(given))
        if known is None or known.data is not given or known.data is None or known.data.shape != known.ref.shape:
            known = Tensor(given)  # type: ignore[arg-type]
        tensor = _wrapped[id(given)] = known
    if tensor.rank != rank or not tensor.dtype.is_integer:
        raise WorkloadStructureError(f"{axis} takes {what} as a rank-{rank} integer tensor", here(),
                                     found=f"rank {tensor.rank}, {tensor.dtype}")
    return tensor
