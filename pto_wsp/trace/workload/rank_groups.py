"""Define `RankGroup`: the ranks of a mesh in groups along one axis, what writes their copies, and what counts the bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from pto_wsp.errors import CollectiveError
from pto_wsp.ir.exchange import empty_array
from pto_wsp.ir.mesh import Mesh, MeshInUse
from pto_wsp.ir.symbolic import Symbolic, maximum, minimum
from pto_wsp.ir.tensor import Tensor, TensorView
from pto_wsp.ir.tensor_layout import Shard, TensorLayout, shard_rows
from pto_wsp.ir.traffic import Collective, Sent
from pto_wsp.source import here
from pto_wsp.trace.workload.loops import P
from pto_wsp.trace.workload.moves import Mover
from pto_wsp.values import dataclass

Coordinate: TypeAlias = "int | Symbolic"
Count: TypeAlias = Any     # a whole number, or a scalar of the workload
# -- the ranks along one axis ------------------------------------------------------------------------------------------
Part: TypeAlias = Callable[[Sequence[Coordinate]], TensorView]


@dataclass(slots=True)
class RankGroup:
    """The groups of ranks along one axis of a mesh, and the mover that writes copies between them."""

    mover: Mover
    ranks: MeshInUse
    axis: int
    algorithm: str

    @property
    def mesh(self) -> Mesh:
        """The mesh."""
        return self.mover.mesh

    @property
    def p(self) -> int:
        """The number of ranks of a group."""
        return self.mesh.shape[self.axis]

    @property
    def name(self) -> str:
        """The name of the axis."""
        return self.mesh.axes[self.axis][0]

    def along(self, axis: int) -> RankGroup:
        """Return the groups along another axis."""
        return RankGroup(self.mover, self.ranks, axis, self.algorithm)

    def all(self, *, n: int | None = None) -> Iterator[tuple[Coordinate, ...]]:
        """Loop over all ranks, given by their positions. `n`: of as many positions along the axis, from 0."""
        sizes = [n if n is not None and number == self.axis else size for number, size in enumerate(self.mesh.shape)]
        names = [name for name, _ in self.mesh.axes]
        for at in P(*sizes, names=names):
            yield at if isinstance(at, tuple) else (at,)

    def moved(self, at: Sequence[Coordinate], to: Coordinate) -> tuple[Coordinate, ...]:
        """Return a rank's position with another one along the axis."""
        return tuple(to if number == self.axis else one for number, one in enumerate(at))

    def rank(self, at: Sequence[Coordinate]) -> Symbolic:
        """Return the number of the rank at a position."""
        return Symbolic(self.mesh.rank(at))

    def next(self, at: Sequence[Coordinate], by: int | Symbolic) -> Coordinate:
        """Return the position along the axis `by` ranks on, round the end."""
        return modulo(at[self.axis] + by, self.p)

    def send(self, target: Part, source: Part, to: Sequence[Coordinate], of: Sequence[Coordinate]) -> None:
        """Copy the part of one rank to the part of another one."""
        self.mover.copy(target(to), source(of), self.rank(to), self.rank(of))

    def local(self, target: Part, source: Part, at: Sequence[Coordinate]) -> None:
        """Copy a part of a rank to another one of its parts."""
        self.send(target, source, at, at)

    def add(self, target: Part, source: Part, at: Sequence[Coordinate], op: str) -> None:
        """Combine a part of a rank with a total of it."""
        self.mover.combine(target(at), source(at), self.rank(at), op)

    def scratch(self, like: Tensor, layout: TensorLayout, shape: Sequence[int] | None = None) -> Tensor:
        """Return memory of the program for parts like those of a tensor."""
        made = Tensor(None, tuple(like.ref.shape) if shape is None else tuple(shape), like.dtype, None, layout)
        made.intermediate = True
        made.data = empty_array(made.ref.shape, made.dtype.np)
        return made

    def result(self, what: str, tensor: Tensor, layout: TensorLayout, out: Tensor | None,
               shape: Sequence[int] | None = None) -> tuple[Tensor, Part, Callable[[], None]]:
        """Return the tensor of a result, the part of each rank, and what ends the collective: an array takes rank 0's copy.

        `shape`: of the result, if it is not the tensor's.
        """
        check_out(what, out, tensor, layout, self.mesh, shape)
        if out is None:
            made = self.scratch(tensor, layout, shape)
            return made, lambda at: made.part(self.mesh, at), _nothing
        free = self.free_axes(layout)
        if out.intermediate or not free:
            return out, lambda at: out.part(self.mesh, at), _nothing
        n = 1
        for number in free:
            n *= self.mesh.shape[number]
        kept = self.ranks.copies.get(out.ref.id)
        if not isinstance(kept, Tensor):
            kept = self.ranks.copies[out.ref.id] = out.copies_for(n)
        whole = Tensor.part

        def finish() -> None:
            sizes = [1 if number in free else size for number, size in enumerate(self.mesh.shape)]
            for at in _positions(sizes, self.mesh):
                copies = self.ranks.copies.pop(out.ref.id)
                target = whole(out, self.mesh, at)
                self.ranks.copies[out.ref.id] = copies
                self.mover.copy(target, whole(out, self.mesh, at), self.rank(at), self.rank(at))

        return out, lambda at: whole(out, self.mesh, at), finish

    def assign(self, tensor: Tensor, out: Tensor) -> Tensor:
        """Copy every rank's part to the same part of another tensor."""
        assert tensor.layout is not None
        _, part, finish = self.result("relayout", tensor, layout_on(tensor, self.mesh), out)
        for at in self.all():
            self.local(part, lambda at: tensor.part(self.mesh, at), at)
        finish()
        self.record("relayout", tensor, lambda at: 0)
        return out

    def free_axes(self, layout: TensorLayout) -> list[int]:
        """Return the numbers of the mesh axes along which ranks have copies of a tensor."""
        cut = {layout.named_on(self.mesh).dist[dim] for dim in range(layout.rank)}
        return [number for number, (name, size) in enumerate(self.mesh.axes) if size > 1 and Shard(name) not in cut]

    # -- steps of algorithms -------------------------------------------------------------------------------------------

    def chunk(self, part: Part, dim: int, most: int, q: Callable[[Sequence[Coordinate]], Coordinate]) -> Part:
        """Return chunk q of a part: of its `most` rows or fewer in `dim`, p chunks of ceildiv(most, p)."""
        rows = -(-most // self.p)

        def cut(at: Sequence[Coordinate]) -> TensorView:
            whole, number = part(at), q(at)
            extent = whole.shape[dim]
            if isinstance(extent, int) and extent == self.p * rows:
                full: TensorView = whole[(slice(None),) * dim + (slice(number * rows, (number + 1) * rows),)]
                return full
            start, stop = minimum(number * rows, extent), minimum((number + 1) * rows, extent)
            view: TensorView = whole[(slice(None),) * dim + (slice(start, stop),)]
            return view.clip(*(rows if number == dim else None for number in range(view.rank)))

        return cut

    def broadcast(self, part: Part, root: int) -> None:
        """Copy the parts at position `root` to the other positions."""
        p = self.p
        if self.algorithm == "direct":
            for at in self.all(n=p - 1):
                to = self.moved(at, modulo(at[self.axis] + 1 + root, p))
                self.send(part, part, to, self.moved(at, root))
        elif self.algorithm == "ring":
            for step in P.seq(p - 1, names="step"):
                for at in self.all(n=1):
                    self.send(part, part, self.moved(at, modulo(step + 1 + root, p)), self.moved(at, modulo(step + root, p)))
        else:
            for first, apart, n in reversed(tree_levels(p)):
                for at in self.all(n=n):
                    of = at[self.axis] * first + root
                    self.send(part, part, self.moved(at, modulo(of + apart, p)), self.moved(at, modulo(of, p)))

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def local_bytes(self, tensor: Tensor, dim: int | None = None) -> Sent:
        """Return the bytes of a rank's part of a tensor, by position; without dimension `dim`, which counts its rows apart."""
        layout, shape = layout_on(tensor, self.mesh), tensor.ref.shape

        def of(at: Sequence[Coordinate]) -> Count:
            total: object = tensor.dtype.nbytes
            for number, (extent, cut) in enumerate(zip(shape, layout.dist, strict=True)):
                if number == dim:
                    continue
                total = total * rows_of_rank(extent, self.mesh, cut, at)
            return total

        return of

    def chunk_rows(self, tensor: Tensor, dim: int, q: Coordinate, at: Sequence[Coordinate]) -> Count:
        """Return the rows of chunk q of a rank's part."""
        layout = layout_on(tensor, self.mesh)
        whole = tensor.ref.shape[dim]
        cut = layout.dist[dim]
        most = whole if not isinstance(cut, Shard) else -(-whole // self.mesh.shape[self.mesh.axis(cut.axis)])
        rows = -(-most // self.p)
        return maximum(0, minimum(rows, rows_of_rank(whole, self.mesh, cut, at) - q * rows))

    def sent_broadcast(self, whole: Sent, root: int) -> Sent:
        """Return the bytes that a rank sends in a broadcast of its part."""
        p = self.p

        def of(at: Sequence[Coordinate]) -> Count:
            v = modulo(at[self.axis] + (p - root), p)
            if self.algorithm == "direct":
                count: object = (p - 1) * is_at(v, 0)
            elif self.algorithm == "ring":
                count = 1 - is_at(v, p - 1) if p > 1 else 0
            else:
                count = 0
                for first, apart, _ in tree_levels(p):
                    count = count + is_at(modulo(v, first), 0) * is_below(v + apart, p)
            return whole(at) * count

        return of

    def record(self, what: str, tensor: Tensor, sent: Sent) -> None:
        """Keep what a collective sends."""
        self.ranks.moves.append(Collective(what, self.algorithm, self.mesh, self.name, tensor.ref.shown, sent, here()))


def _nothing() -> None:
    return None


def _positions(sizes: Sequence[int], mesh: Mesh) -> Iterator[tuple[Coordinate, ...]]:
    for at in P(*sizes, names=[name for name, _ in mesh.axes]):
        yield at if isinstance(at, tuple) else (at,)


def modulo(value: Count, n: int) -> Coordinate:
    """Return a position round the end of an axis."""
    found: Coordinate = value % n
    return found


def is_at(value: Coordinate, number: int) -> Count:
    """Return 1 where a position, from 0 on, is a number, else 0."""
    if isinstance(value, int):
        return int(value == number)
    return 1 - minimum(1, maximum(value - number, number - value))


def is_below(value: Count, n: int) -> Count:
    """Return 1 where a whole number is below n, else 0."""
    if isinstance(value, int):
        return int(value < n)
    return maximum(0, minimum(1, n - value))


def rows_of_rank(extent: int, mesh: Mesh, cut: object, at: Sequence[Coordinate]) -> Count:
    """Return the number of rows of a dimension that the rank at coordinates `at` stores."""
    if not isinstance(cut, Shard):
        return extent
    number = mesh.axis(cut.axis)
    n = mesh.shape[number]
    rows = shard_rows(extent, n)
    if extent % n == 0:
        return rows
    return maximum(0, minimum(rows, extent - at[number] * rows))


def tree_levels(p: int) -> list[tuple[int, int, int]]:
    """Return the levels of a tree over p positions, from the leaves up: 2^(l+1), 2^l, and how many pairs there are.

    On a level, position i * 2^(l+1) takes from the position 2^l on.
    """
    levels, apart = [], 1
    while apart < p:
        levels.append((2 * apart, apart, -(-(p - apart) // (2 * apart))))
        apart *= 2
    return levels


def layout_on(tensor: Tensor, mesh: Mesh) -> TensorLayout:
    """Return the layout of a tensor that has one, with the names of a mesh."""
    assert tensor.layout is not None
    return tensor.layout.named_on(mesh)


def check_out(what: str, out: object, like: Tensor, layout: TensorLayout, mesh: Mesh, shape: Sequence[int] | None = None) -> None:
    """Check the tensor that a result of a shape, by default that of `like`, is written to.

    Raises: M104.
    """
    if out is None:
        return
    if not isinstance(out, Tensor):
        raise CollectiveError(f"{what}: out is no Tensor", here(), expected="a Tensor with the result's layout", found=f"{out!r:.60}")
    found, wanted = None if out.layout is None else out.layout.named_on(mesh), like.ref.shape if shape is None else tuple(shape)
    if found is None or (found.dist, found.partial) != (layout.dist, layout.partial) or out.ref.shape != wanted or out.dtype != like.dtype:
        raise CollectiveError(f"{what}: out does not fit the result", here(), expected=f"{list(wanted)} {like.dtype}, {layout!r}",
                              found=f"{list(out.ref.shape)} {out.dtype}, {found!r}")
    if out is like:
        raise CollectiveError(f"{what}: out is the tensor itself", here(), expected="another tensor")


def check_number(problem: str, value: object, least: int, most: int) -> int:
    """Return a whole number between two.

    Raises: M104 for anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise CollectiveError(problem, here(), expected=f"a whole number, {least} .. {most}", found=f"{value!r:.60}")
    return value
