"""Generate functions on tensors with layouts over a mesh: operations that the layouts allow, and collectives where they do not.

Elements are small whole numbers, so that every order of a sum gives the same bits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pto_wsp import (
    Mesh,
    PtoError,
    Replicate,
    Shard,
    Tensor,
    TensorLayout,
    all_to_all,
    allgather,
    allreduce,
    broadcast,
    halo,
    jit,
    reduce_scatter,
    relayout,
    tt,
)

Step = Callable[[list[Any]], Any]
_MESHES = [{"x": 2}, {"x": 3}, {"x": 4}, {"x": 2, "y": 2}, {"x": 3, "y": 2}, {"x": 1, "y": 2}]


@dataclass
class Drawn:
    """A function, its arguments with layouts, the mesh, and what was refused on the way, by code."""

    function: Any
    mesh: Mesh
    arguments: list[Tensor]
    refused: list[str]
    moved: int

    def check(self, target: str, algorithm: str | None = None) -> None:
        """Run the function over the mesh, and hold the results against NumPy. `algorithm`: of all collectives but all_to_all."""
        expected = self.function.python([np.asarray(one) for one in self.arguments])
        function = self.function.using(mesh=self.mesh, target=target)
        plan = None if algorithm is None else function.plan(self.arguments)
        if plan is not None:
            plan = plan.but(collectives={one.name: algorithm for one in plan.entries if one.key == "collectives" and one.value == "ring"})
        found = function(self.arguments, plan=plan)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(one), other)


def generate(seed: int, n_steps: int = 7) -> Drawn:
    """Return the function of a seed."""
    rng = random.Random(seed)
    mesh = Mesh(**rng.choice(_MESHES))
    names = [name for name, _ in mesh.axes]
    numbers = np.random.default_rng(seed)
    sizes = [rng.choice([1, 2, 3, 4, 5, 6, 8, 9, 12]) for _ in range(2)]
    shapes = [tuple(rng.choice(sizes) for _ in range(rng.choice([1, 2, 2, 2, 3]))) for _ in range(3)]
    arguments = [Tensor(numbers.integers(-2, 3, shape).astype(np.float32), layout=_layout(rng, len(shape), names)) for shape in shapes]
    drawn = Drawn(None, mesh, arguments, [], 0)
    steps: list[Step] = []
    results: list[int] = []
    for _ in range(n_steps):
        step, moves = _step(rng, names, len(arguments) + len(steps))
        if _takes(drawn, [*steps, step], [*results, len(arguments) + len(steps)]):
            drawn.moved += moves
            results.append(len(arguments) + len(steps))
            steps.append(step)
        elif _takes(drawn, [*steps, lambda values, step=step: _total(step(values))], [*results, len(arguments) + len(steps)]):
            drawn.moved += 1
            results.append(len(arguments) + len(steps))
            steps.append(lambda values, step=step: _total(step(values)))
    drawn.function = _function(steps, results or [0])
    return drawn


def _total(value: Any) -> Any:
    return relayout(value, TensorLayout.replicated(value.ndim))


def _layout(rng: random.Random, rank: int, names: Sequence[str]) -> TensorLayout:
    dist: list[Replicate | Shard] = [Replicate()] * rank
    for name in names:
        free = [dim for dim, one in enumerate(dist) if isinstance(one, Replicate)]
        if free and rng.random() < 0.6:
            dist[rng.choice(free)] = Shard(name)
    return TensorLayout(dist)


def _function(steps: Sequence[Step], results: Sequence[int]) -> Any:
    def body(arrays: Any) -> Any:
        values = list(arrays)
        for step in steps:
            values.append(step(values))
        return tuple(values[k] for k in results)

    return jit(body)


def _takes(drawn: Drawn, steps: Sequence[Step], results: Sequence[int]) -> bool:
    """Tell whether the steps are a function that the mesh takes, of numbers that stay exact."""
    function = _function(steps, results)
    try:
        with np.errstate(all="ignore"):
            found = function.python([np.asarray(one) for one in drawn.arguments])
    except (PtoError, ValueError, IndexError, TypeError):
        return False
    if any(not one.size or one.size > 3000 or np.abs(one).max() > 1 << 18 for one in found):
        return False
    try:
        function.using(mesh=drawn.mesh).plan(drawn.arguments, until="simplify")
    except PtoError as problem:
        drawn.refused.append(problem.code)
        return False
    return True


def _step(rng: random.Random, names: Sequence[str], n: int) -> tuple[Step, bool]:
    """Return a step on the n values so far, and whether it is a collective."""
    a, b = rng.randrange(n), rng.randrange(n)
    axis, dim, name, size = rng.choice([0, -1]), rng.choice([0, 1]), rng.choice(names), rng.choice([2, 3, 4])
    cuts = rng.randrange(1 << 30)
    moves: list[Step] = [
        lambda v: allgather(v[a], name), lambda v: all_to_all(v[a], dim, name),
        lambda v: relayout(v[a], _layout(random.Random(cuts), v[a].ndim, names)),
        lambda v: allreduce(v[a] @ v[b]), lambda v: reduce_scatter(v[a] @ v[b], dim), lambda v: allreduce(np.sum(v[a], axis=axis)),
        lambda v: _row_by_row(v[a], v[b]), lambda v: _kept(v[a], v[b]),
        lambda v: _stencil(v[a], size - 1, dim, name), lambda v: allreduce(_added(v[a], v[b])), lambda v: broadcast(v[a], 1, name),
        lambda v: allreduce(np.max(v[a], axis=axis), name), lambda v: allreduce(np.min(v[a], axis=axis, keepdims=True))]
    plain: list[Step] = [
        lambda v: v[a] + v[b], lambda v: v[a] * v[b], lambda v: v[a] - 2 * v[b], lambda v: np.maximum(v[a], v[b]), lambda v: -v[a],
        lambda v: v[a] @ v[b], lambda v: v[a] @ v[b].T, lambda v: v[a].T, lambda v: np.sum(v[a], axis=axis),
        lambda v: np.max(v[a], axis=axis, keepdims=True), lambda v: v[a][:, None], lambda v: v[a][:size], lambda v: v[a][..., 1:],
        lambda v: v[a].reshape(v[a].shape[0], size, -1), lambda v: v[a].reshape(-1), lambda v: np.concatenate([v[a], v[b]], axis=axis),
        lambda v: np.stack([v[a], v[b]], axis=axis), lambda v: np.where(v[a] > 0, v[b], v[a]), lambda v: _by_rows(v[a], v[b]),
        lambda v: _summed(v[a], v[b]), lambda v: _added(v[a], v[b]),
        lambda v: v[a] + tt.arange(v[a].shape[-1]).astype(np.float32)]
    is_move = rng.random() < 0.35
    return rng.choice(moves if is_move else plain), is_move


def _by_rows(a: Any, b: Any) -> Any:
    """Return a * 2 + b, row by row, in a loop of any order."""
    out = tt.empty(a.shape)
    for i in tt.each(a.shape[0]):
        out[i] = a[i] * 2 + b[i]
    return out


def _summed(a: Any, b: Any) -> Any:
    """Return a @ b, a block of the inner dimension after the other."""
    out = tt.zeros((a.shape[0], b.shape[1]))
    for j in tt.loop(0, a.shape[1], 2):
        out[:] = out + a[:, j:j + 2] @ b[j:j + 2]
    return out


def _row_by_row(a: Any, b: Any) -> Any:
    """Return a @ b, a total over the ranks for each row."""
    out = tt.empty((a.shape[0], b.shape[1]))
    for i in tt.each(a.shape[0]):
        out[i:i + 1] = allreduce(a[i:i + 1] @ b)
    return out


def _kept(a: Any, b: Any) -> Any:
    """Return a @ b + 2 a, where 2 a is state that is written before the collective."""
    state = tt.zeros(a.shape)
    state[:] = a * 2
    total = allreduce(a @ b)
    return total + state


def _stencil(a: Any, k: int, dim: int, name: str) -> Any:
    """Return the difference of the neighbours k positions before and behind along a dimension that is cut, zeros beyond the ends."""
    n, held = a.shape[dim], halo(relayout(a, TensorLayout.sharded(dim, a.ndim, name)), k, dim)
    return held[2 * k:] - held[:n] if dim == 0 else held[:, 2 * k:] - held[:, :n]


def _added(a: Any, b: Any) -> Any:
    """Return the sum of the rows of a * b, one after the other."""
    total = tt.zeros(a.shape[1:])
    for i in tt.loop(a.shape[0]):
        total += a[i] * b[i]
    return total
