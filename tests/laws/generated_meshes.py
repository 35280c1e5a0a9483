"""Generate meshes, layouts of a tensor before and after, and algorithms; and what NumPy says that every rank then holds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pto_wsp import DType, Mesh, P, Partial, Program, Replicate, Shard, Tensor, TensorLayout, Workload, copy, relayout, workload

_OPS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


@dataclass(frozen=True)
class Move:
    """A tensor's layout before and after, on a mesh, by an algorithm."""

    mesh: tuple[tuple[str, int], ...]
    shape: tuple[int, ...]
    before: TensorLayout
    after: TensorLayout
    algorithm: str
    dtype: DType
    to_array: bool
    seed: int


def generate(seed: int) -> Move:
    """Return the move of a seed."""
    rng = random.Random(seed)
    sizes = rng.choice([(1,), (2,), (3,), (4,), (5,), (2, 2), (2, 3), (3, 2), (2, 1), (4, 2)])
    names = "xy"[:len(sizes)]
    shape = tuple(rng.choice([1, 2, 3, 4, 5, 7, 8, 12, 13]) for _ in range(rng.choice([1, 2, 2, 2, 3])))
    algorithm = rng.choice(["ring", "tree", "direct"])
    after = _layout(rng, len(shape), names, partial=False)
    before = _layout(rng, len(shape), names, partial=rng.random() < 0.6)
    if algorithm == "tree" and any(None not in (before.dim_of(axis), after.dim_of(axis)) and before.dim_of(axis) != after.dim_of(axis)
                                   for axis in names):
        algorithm = "ring"          # an all_to_all has no tree
    dtype = rng.choice([DType.F32, DType.F32, DType.I32, DType.F16])
    return Move(tuple(zip(names, sizes, strict=True)), shape, before, after, algorithm, dtype, rng.random() < 0.7, seed)


def _layout(rng: random.Random, rank: int, names: str, *, partial: bool) -> TensorLayout:
    dist: list[Replicate | Shard] = [Replicate()] * rank
    terms = []
    for name in names:
        free = [dim for dim, one in enumerate(dist) if isinstance(one, Replicate)]
        choice = rng.random()
        if partial and choice < 0.6:
            terms.append(Partial(name, "sum" if not terms else terms[0].op))
        elif free and choice < 0.8:
            dist[rng.choice(free)] = Shard(name)
    if terms:
        op = rng.choice(["sum", "sum", "max", "min"])
        terms = [Partial(one.axis, op) for one in terms]
    return TensorLayout(dist, partial=terms)


def terms_of(move: Move) -> np.ndarray:
    """Return the whole tensor that each rank would hold, by rank: equal along axes that are not partial."""
    rng = np.random.default_rng(move.seed)
    partial = {one.axis for one in move.before.partial}
    sizes = [size if name in partial else 1 for name, size in move.mesh]
    terms = rng.integers(-8, 9, (*sizes, *move.shape)).astype(move.dtype.np)
    full = [size for _, size in move.mesh]
    return np.ascontiguousarray(np.broadcast_to(terms, (*full, *move.shape)).reshape(-1, *move.shape))


def expected_of(move: Move) -> np.ndarray:
    """Return the whole tensor."""
    sizes = [size for _, size in move.mesh]
    whole = terms_of(move).reshape(*sizes, *move.shape)
    partial = {one.axis: one.op for one in move.before.partial}
    for axis in reversed(range(len(sizes))):
        name = move.mesh[axis][0]
        whole = _OPS[partial[name]].reduce(whole, axis=axis, dtype=move.dtype.np) if name in partial else np.take(whole, 0, axis=axis)
    return whole


def part_of(whole: np.ndarray, layout: TensorLayout, mesh: Mesh, rank: int) -> np.ndarray:
    """Return the part of a whole tensor that a rank holds, by NumPy."""
    return whole[cuts_of(whole.shape, layout, mesh, rank)]


def cuts_of(shape: Sequence[int], layout: TensorLayout, mesh: Mesh, rank: int) -> tuple[slice, ...]:
    """Return which part of a tensor a rank holds, as slices of its dimensions."""
    at = np.unravel_index(rank, mesh.shape)
    cuts = []
    for n, cut in zip(shape, layout.dist, strict=True):
        c, p = (int(at[mesh.axis(cut.axis)]), mesh.shape[mesh.axis(cut.axis)]) if isinstance(cut, Shard) else (0, 1)
        rows = -(-n // p)
        cuts.append(slice(min(c * rows, n), min((c + 1) * rows, n)))
    return tuple(cuts)


@dataclass
class Made:
    """A workload that brings in a tensor, moves it, and shows what each rank holds."""

    workload: Workload
    out: np.ndarray | None
    whole: np.ndarray
    shown: np.ndarray     # by rank, -99 where nothing was held
    parts: Sequence[np.ndarray]     # by NumPy

    def check(self, program: Program) -> None:
        """Run the program, and hold what ranks have against NumPy; what collectives sent against what they say."""
        program.run()
        for rank, (shown, part) in enumerate(zip(self.shown, self.parts, strict=True)):
            held = shown[tuple(slice(0, n) for n in part.shape)]
            np.testing.assert_array_equal(held, part, err_msg=f"rank {rank}")
        if self.out is not None:
            np.testing.assert_array_equal(self.out, self.whole)
        sent = program.bytes_sent.copy()
        np.fill_diagonal(sent, 0)
        said = [sum(one.bytes_sent(rank) for one in self.workload.collectives) for rank in range(len(self.parts))]
        assert sent.sum(axis=1).tolist() == said


def make(move: Move) -> Made:
    """Return the workload of a move: arrays that have a leading position for each mesh axis belong to one rank each."""
    mesh, rank = Mesh(**dict(move.mesh)), len(move.shape)
    terms, whole = terms_of(move), expected_of(move)
    own = TensorLayout((*(Shard(name) for name, _ in move.mesh), *(Replicate(),) * rank))
    given = Tensor(terms.reshape(*mesh.shape, *move.shape), name="given", layout=own)
    shown = np.full((mesh.size, *move.shape), -99, move.dtype.np)
    seen = Tensor(shown.reshape(*mesh.shape, *move.shape), name="seen", layout=own)
    out = np.full(move.shape, -99, move.dtype.np) if move.to_array else None
    parts = [part_of(whole, move.after, mesh, r) for r in range(mesh.size)]
    first = (0,) * len(mesh.shape)

    @workload
    def program() -> None:
        source = Tensor.empty(move.shape, move.dtype, name="source", layout=move.before)
        for r in _ranks(mesh):
            cuts = cuts_of(move.shape, move.before, mesh, r)
            if all(cut.stop > cut.start for cut in cuts):
                copy(given.on(r)[first][cuts], source.on(r))
        target = None if out is None else Tensor(out, name="out", layout=move.after)
        moved = relayout(source, move.after, out=target, algorithm=move.algorithm)   # type: ignore[arg-type]
        for r in _ranks(mesh):
            if parts[r].size:
                copy(moved.on(r), seen.on(r)[first][tuple(slice(0, n) for n in parts[r].shape)])

    return Made(program(), out, whole, shown, parts)


def _ranks(mesh: Mesh) -> range:
    """Name the mesh, by a loop without tasks, and return its ranks."""
    for _ in P(mesh):
        pass
    return range(mesh.size)
