"""Which values leave the loop that makes them, and names for new ones."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, bodies_of, result_of, uses_of, walk


def use_counts(body: Body) -> Counter[int]:
    """Return how often each value is used, by its id."""
    return Counter(value.id for stmt in walk(body) if not bodies_of(stmt) for value in uses_of(stmt))


def leaving(body: Body, all_uses: Counter[int]) -> frozenset[int]:
    """Return the ids of results of `body` that statements outside it use; `all_uses`: `use_counts` of all that may use them."""
    inside = use_counts(body)
    made = {result.id for stmt in walk(body) if (result := result_of(stmt)) is not None}
    return frozenset(value for value in made if all_uses[value] > inside[value])


def fresh_ids(kernel: k.Kernel) -> Iterator[int]:
    """Return ids that no value of the kernel has."""
    made = [result.id for stmt in walk(kernel.body) if (result := result_of(stmt)) is not None]
    return itertools.count(max(made, default=-1) + 1)
