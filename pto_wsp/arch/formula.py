"""How the formulas of statements become those of loops, branches and sequences, whether they count cycles or bytes.

>>> print_scalar(repeated(for_j_in_range_n, Const(74)))
'max(n, 0) * 74'
"""

from __future__ import annotations

from collections.abc import Iterable

from pto_wsp.expr import kernel as k
from pto_wsp.types import scalar as s

# Scalar parameters are replaced by the workload's expressions, whose loop variables are numbered from 0 as a kernel's are.
FIRST_SUM = 1 << 20


def trips_of(stmt: k.For) -> s.Scalar:
    """Return how many turns a loop takes, 0 for an empty range."""
    return s.maximum(s.ceil_div(s.sub(stmt.stop, stmt.start), stmt.step), s.Const(0))


def repeated(stmt: k.For, amount: s.Scalar) -> s.Scalar:
    """Return the amount of all turns of a loop from that of one turn, which may depend on the loop's variable."""
    if stmt.var not in s.leaves(amount):
        return s.mul(trips_of(stmt), amount)
    var = s.Var(stmt.var.name, stmt.var.id + FIRST_SUM)
    return s.Sum(var, stmt.start, stmt.stop, stmt.step, s.substitute(amount, lambda node: var if node == stmt.var else None))


def either(condition: s.Scalar, then: s.Scalar, other: s.Scalar) -> s.Scalar:
    """Return the amount of the side of a branch that runs."""
    return then if then == other else s.select(condition, then, other)


def total_of(terms: Iterable[s.Scalar]) -> s.Scalar:
    """Return the sum; constants last, as a reader expects them."""
    fixed = 0
    moving: s.Scalar = s.Const(0)
    for term in terms:
        if isinstance(term, s.Const):
            fixed += int(term.value)
        else:
            moving = s.add(moving, term)
    return s.add(moving, s.Const(fixed))
