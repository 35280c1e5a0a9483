"""Define `Mesh`, the ranks that a workload is distributed over, and `OnRank`, where a task runs.

A mesh is an axis whose positions are machines. Ranks count row-major over the mesh's own axes, as declared.

>>> mesh = Mesh(x=2, y=4)
>>> mesh.size, mesh.coordinates(5)
(8, (1, 1))
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field

from pto_wsp.calls import user_calls
from pto_wsp.errors import MeshError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.scalar import Scalar
from pto_wsp.ir.symbolic import Counted, Symbolic, as_scalar
from pto_wsp.source import UNKNOWN, Span, here
from pto_wsp.values import dataclass

MAX_RANKS = 1 << 12
SOURCE_RANK = 1 << 16       # what the rank that a copy reads from is multiplied with in pto_task.ranks


@dataclass(frozen=True, slots=True)
class RowLimit:
    """A number of rows that a collective reads in a run, and the most that there may be. `problem`: what is wrong if there are more."""

    rows: Scalar
    most: int
    problem: str


@dataclass(frozen=True, slots=True)
class OnRank:
    """The rank that a task runs on, of a mesh given as pairs of an axis and its size.

    `source`: for a copy, the rank that holds what it reads; None for a task that reads only what its own rank holds. `limits`: what holds
    for the collective whose first copy the task is.
    """

    mesh: tuple[tuple[str, int], ...]
    rank: Scalar
    source: Scalar | None = None
    limits: tuple[RowLimit, ...] = ()

    @property
    def n_ranks(self) -> int:
        """The number of ranks of the mesh."""
        return math.prod(size for _, size in self.mesh)

    @property
    def crosses(self) -> bool:
        """Whether the task reads what another rank may hold."""
        return self.source is not None and self.source != self.rank


def ranks_of_task(on: OnRank | None) -> Scalar:
    """Return the ranks of a task as pto_task.ranks has them: 1 + its rank + 65536 * (1 + the rank that a copy reads from); 0 for none."""
    if on is None:
        return s.Const(0)
    source = s.Const(0) if on.source is None else s.mul(s.add(on.source, s.Const(1)), s.Const(SOURCE_RANK))
    return s.add(s.add(on.rank, s.Const(1)), source)


@user_calls(leave_out=("__eq__", "__hash__", "__repr__"))
class Mesh(Counted):
    """The ranks that a workload is distributed over: `Mesh(x=2, y=4)` has eight, in an array with the axes `x` and `y`.

    `for r in P(mesh)` loops over the ranks. A layout names an axis of the mesh, or its number: `mesh_axis="x"`, `mesh_axis=0`.
    """

    __slots__ = ("axes",)

    def __init__(self, **axes: int) -> None:
        """Make a mesh of named axes, each of a size of at least 1.

        Raises: M102 for a mesh without axes, for a size that is none, and for more than 4096 ranks.
        """
        if not axes:
            raise MeshError("a mesh has at least one axis", here(), expected="Mesh(x=2), or Mesh(x=2, y=4)")
        for name, size in axes.items():
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise MeshError(f"axis `{name}` of a mesh has no size", here(), expected="a whole number, at least 1",
                                found=f"{size!r:.60}")
        self.axes = tuple((name, int(size)) for name, size in axes.items())
        if self.size > MAX_RANKS:
            raise MeshError("a mesh has too many ranks", here(), expected=f"at most {MAX_RANKS}", found=f"{self.size}")

    @staticmethod
    def of(axes: Sequence[tuple[str, int]]) -> Mesh:
        """Return the mesh of pairs of a name and a size."""
        return Mesh(**dict(axes))

    @property
    def size(self) -> int:
        """The number of ranks."""
        return math.prod(size for _, size in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return tuple(size for _, size in self.axes)

    def axis(self, which: object) -> int:
        """Return the number of an axis, given by its name or its number.

        Raises: M102 if there is none.
        """
        names = [name for name, _ in self.axes]
        if isinstance(which, str) and which in names:
            return names.index(which)
        if isinstance(which, int) and not isinstance(which, bool) and 0 <= which < len(names):
            return which
        raise MeshError(f"`{self!r}` has no axis {which!r:.60}", here(), expected=f"one of {', '.join(map(repr, names))}, "
                        f"or a number below {len(names)}")

    def coordinates(self, rank: object) -> tuple[int | Symbolic, ...]:
        """Return the position of a rank along each axis: numbers for a number, scalars for a scalar.

        Raises: M102 for a number that is no rank; T205 for what is no scalar.
        """
        node = as_scalar(rank)
        if not s.scalar_dtype(node).is_integer or (isinstance(node, s.Const) and not 0 <= node.value < self.size):
            raise MeshError(f"`{self!r}` has no such rank", here(), expected=f"a whole number, 0 .. {self.size - 1}", found=f"{rank!r:.60}")
        found: list[int | Symbolic] = []
        below = self.size
        for number, (_, size) in enumerate(self.axes):
            below //= size
            at = node if below == 1 else s.binary(s.Op.FLOORDIV, node, s.Const(below))
            at = at if number == 0 else s.binary(s.Op.MOD, at, s.Const(size))
            at = s.Const(0) if size == 1 else at
            found.append(int(at.value) if isinstance(at, s.Const) else Symbolic(at))
        return tuple(found)

    def rank(self, coordinates: Sequence[object]) -> Scalar:
        """Return the rank at a position along each axis, as a scalar of the IR."""
        total: Scalar = s.Const(0)
        for at, (_, size) in zip(coordinates, self.axes, strict=True):
            total = s.add(s.mul(total, s.Const(size)), as_scalar(at))
        return total

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and self.axes == other.axes

    def __hash__(self) -> int:
        return hash(self.axes)

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{name}={size}' for name, size in self.axes)})"


@dataclass(slots=True, eq=False)
class MeshInUse:
    """The mesh of the workload being traced, and where it was named first.

    `copies`: by the id of a tensor with an array, the tensor that has every rank's copy once a collective has written them; `of_ranks`:
    ids of the tensors that hold copies; `loops`: the ranks of the open loops over the mesh; `read`: what the open loops and branches
    evaluate; `moves`: what the collectives so far send.
    """

    mesh: Mesh | None = None
    span: Span = UNKNOWN
    copies: dict[int, object] = field(default_factory=dict)
    of_ranks: set[int] = field(default_factory=set)
    loops: list[Scalar] = field(default_factory=list)
    read: list[tuple[tuple[Scalar, ...], Span]] = field(default_factory=list)
    moves: list[object] = field(default_factory=list)

    def use(self, mesh: Mesh) -> Mesh:
        """Make a mesh the workload's, and return it.

        Raises: M102 if the workload uses another one.
        """
        if self.mesh is None:
            self.mesh, self.span = mesh, here()
        elif self.mesh != mesh:
            raise MeshError("a workload uses one mesh", here(), expected=f"{self.mesh!r}, which it uses already", found=repr(mesh),
                            also=(("the mesh before", self.span),))
        return self.mesh


_in_use: ContextVar[MeshInUse | None] = ContextVar("pto_wsp_mesh_in_use", default=None)


@contextmanager
def mesh_of_trace() -> Iterator[MeshInUse]:
    """Keep the mesh that a trace uses, for the duration of a `with` block; a trace inside another one shares it."""
    outer = _in_use.get()
    if outer is not None:
        yield outer
        return
    found = MeshInUse()
    token = _in_use.set(found)
    try:
        yield found
    finally:
        _in_use.reset(token)


def mesh_in_use() -> MeshInUse | None:
    """Return what the running trace knows of its mesh; None outside a trace."""
    return _in_use.get()


def known_mesh(what: str) -> tuple[Mesh, MeshInUse]:
    """Return the mesh of the workload being traced. `what`: the subject of the error.

    Raises: M102 where no mesh was named yet, and outside a workload.
    """
    found = _in_use.get()
    if found is None or found.mesh is None:
        raise MeshError(f"{what}: no mesh is known here", here(),
                        expected="a workload that names its mesh before" if found is not None else "a function decorated with @workload",
                        help="loop `for r in P(mesh):` before, or say mesh=mesh in the collective")
    return found.mesh, found


@dataclass(frozen=True, slots=True, eq=False)
class OverRanks:
    """What compile() is told of processes: a communicator, how long a rank waits, the mesh, and the names of collectives by their lines."""

    comm: object
    timeout_s: float
    mesh: Mesh | None
    collectives: Mapping[Span, str]
