"""Random systems for the solver, and the slow but simple way to solve them."""

from __future__ import annotations

import itertools
import random

from pto_wsp.check.affine.linear import LinExpr, Point, System
from pto_wsp.check.affine.rows import Rows, insert


def boxed(rng: random.Random) -> tuple[System, list[str], int]:
    """Return a system, its variables, and a number that none of them exceeds: such a system can be tried out in full."""
    n_vars = rng.randint(1, 4)
    box = rng.choice([2, 3, 5, 8]) if n_vars < 4 else rng.choice([2, 3])
    names = [f"x{at}" for at in range(n_vars)]
    system = System()
    for name in names:
        system.at_least(LinExpr.of(name), rng.choice([-box, 0])).at_least(-LinExpr.of(name), -box)
    _fill(system, names, rng, rng.choice([1, 2, 3, 5, 7, 12, 30]), rng.randint(1, 6), 0.7)
    return system, names, box


def open_ended(rng: random.Random) -> tuple[System, list[str]]:
    """Return a system whose variables are not bounded but by chance, and its variables."""
    names = [f"x{at}" for at in range(rng.randint(2, 7))]
    system = System()
    largest = rng.choice([1, 2, 3, 5, 7, 12, 30])
    _fill(system, names, rng, largest, rng.randint(2, 2 * len(names)), min(1.0, 2.5 / len(names)))
    return system, names


def nested(rng: random.Random) -> System:
    """Return what a race check asks: two iterations of a loop nest of symbolic sizes, in order, and their tiles meet."""
    n_loops = rng.randint(1, 4)
    one, two = ([LinExpr.of(f"{side}{at}") for at in range(n_loops)] for side in "ij")
    system = System()
    for at in range(n_loops):
        size = rng.choice([LinExpr.of(f"n{at}"), LinExpr.known(rng.choice([1, 3, 64])), *one[:at]])
        other = size if size not in one else two[one.index(size)]
        system.within(one[at], 0, size).within(two[at], 0, other)
    first = rng.randrange(n_loops)
    for at in range(first):
        system.equal(one[at], two[at])
    system.below(one[first], two[first])
    is_odd = rng.random() < 0.2   # the second access walks the tensor in another order, or another one with other strides
    for dim in range(rng.randint(1, 3)):
        where = LinExpr.of(f"e{dim}")
        strides = _strides(rng, n_loops)
        for side in (one, two):
            start = LinExpr.known(rng.choice([0, 0, 1, 16]))
            for var, stride in zip(side, strides, strict=True):
                start = start + var * stride
            system.within(where, start, start + rng.choice([1, 4, 16, 17, 128, 64 * 128]))
            if is_odd:
                strides = _strides(rng, n_loops)
        system.within(where, 0, LinExpr.of(f"s{dim}"))
    return system


def _strides(rng: random.Random, n_loops: int) -> list[int]:
    """Return how far each loop moves an access: some loops not at all, the others by multiples of each other."""
    strides, step = [], rng.choice([1, 1, 4, 16])
    for _ in range(n_loops):
        strides.append(step if rng.random() < 0.6 else 0)
        step *= rng.choice([1, 4, 64, 128, 4096])
    return rng.sample(strides, n_loops)


def _fill(system: System, names: list[str], rng: random.Random, largest: int, n: int, density: float) -> None:
    for _ in range(n):
        expr = LinExpr.known(rng.randint(-3 * largest, 3 * largest))
        for name in names:
            if rng.random() < density:
                expr = expr + LinExpr.of(name, rng.choice([-1, 1, rng.randint(-largest, largest)]))
        kind = rng.random()
        if kind < 0.2:
            system.equal(expr)
        elif kind < 0.3:
            system.differ(expr, 0)
        elif kind < 0.4:
            alternatives = System().at_least(expr), System().equal(expr, rng.randint(-2, 2)), System().at_least(LinExpr.of(names[0]), 1)
            system.either(*alternatives)
        else:
            system.at_least(expr)


def points(names: list[str], most: int) -> list[Point]:
    """Return all points of a box around 0."""
    return [dict(zip(names, values, strict=True)) for values in itertools.product(range(-most, most + 1), repeat=len(names))]


# ---- rows ----

def random_rows(rng: random.Random, n_vars: int, bounded: bool = False) -> Rows:
    """Return some rows over variables 0 … n_vars - 1; `bounded`: each lies between -4 and 4."""
    rows: Rows = {}
    while True:
        rows.clear()
        fine = all(insert(rows, {var: 1}, -4, 4) for var in range(n_vars)) if bounded else True
        for _ in range(rng.randint(1, 4)):
            terms = {var: c for var in range(n_vars) if (c := rng.randint(-6, 6))}
            low = rng.choice([None, rng.randint(-9, 9)])
            high = rng.choice([None, rng.randint(-9, 9)])
            fine = fine and bool(terms) and insert(rows, terms, low, high)
        if fine:
            return rows


def holds(rows: Rows, point: dict[int, int]) -> bool:
    """Tell whether a point is in all rows."""
    values = [(sum(c * point[var] for var, c in form), low, high) for form, (low, high) in rows.items()]
    return all((low is None or low <= value) and (high is None or value <= high) for value, low, high in values)


def box(n_vars: int, most: int) -> list[dict[int, int]]:
    """Return all points of a box around 0."""
    return [dict(enumerate(values)) for values in itertools.product(range(-most, most + 1), repeat=n_vars)]
