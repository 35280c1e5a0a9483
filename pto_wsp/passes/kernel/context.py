"""Provide what kernel passes know beside the kernel: its use in a plan, its core unit, and which values leave a loop."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from pto_wsp.ir import kernel as k
from pto_wsp.ir.kernel_walk import Body, bodies_of, result_of, uses_of, walk
from pto_wsp.ir.plan import KernelUse
from pto_wsp.ops.entry import Unit
from pto_wsp.ops.table import find
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class KernelContext:
    """How a kernel is used in a plan.

    `unit_columns`: memory parameters whose columns are always contiguous. `streamed`: outputs that need not stay in the caches.
    `ragged`: tiles of which a task may bind fewer rows.
    """

    unit_columns: frozenset[str]
    streamed: frozenset[str] = frozenset()
    ragged: frozenset[str] = frozenset()


def context_of(use: KernelUse) -> KernelContext:
    """Return the context of a kernel of a plan."""
    neighbours = frozenset(p.name for p, unit in zip(use.kernel.memory_params, use.unit_inner, strict=True) if unit)
    return KernelContext(neighbours, frozenset(use.streamed), frozenset(use.ragged))


def unit_of(kernel: k.Kernel) -> Unit:
    """Return the cube unit for a kernel that multiplies matrices, in Python or in a C/C++ body, otherwise the vector unit."""
    multiplies = any(isinstance(stmt, k.Accumulate) or (isinstance(stmt, k.Compute) and find(stmt.op).unit is Unit.CUBE)
                     for stmt in walk(kernel.body))
    return Unit.CUBE if multiplies or any("TMATMUL" in own.text for own in kernel.bodies) else Unit.VECTOR


def use_counts(body: Body) -> Counter[int]:
    """Return how often each value is used, by value id."""
    return Counter(value.id for stmt in walk(body) if not bodies_of(stmt) for value in uses_of(stmt))


def leaving(body: Body, all_uses: Counter[int]) -> frozenset[int]:
    """Return the ids of results of `body` used by statements outside. `all_uses`: `use_counts` of all possible users."""
    inside = use_counts(body)
    made = {result.id for stmt in walk(body) if (result := result_of(stmt)) is not None}
    return frozenset(value for value in made if all_uses[value] > inside[value])


def fresh_ids(kernel: k.Kernel) -> Iterator[int]:
    """Yield ids that no value of the kernel has."""
    made = [result.id for stmt in walk(kernel.body) if (result := result_of(stmt)) is not None]
    return itertools.count(max(made, default=-1) + 1)
