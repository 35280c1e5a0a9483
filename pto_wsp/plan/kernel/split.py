"""Split a row region with narrow reductions into several loops over rows.

Folding the lanes of a reduction and then waiting for it costs more than a narrow row's arithmetic. With one loop over rows a
level, rows overlap in the machine, and what is computed once a row (`exp` of a running maximum) becomes a loop of its own that
vectorises over rows. What crosses from loop to loop is kept in memory, so wide rows stay in one loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto_wsp.expr import kernel as k
from pto_wsp.ops.entry import Operator
from pto_wsp.ops.spec import ColReduce, Elementwise, Expand, RowReduce
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.regions import Member
from pto_wsp.values import dataclass

_MIN_ROWS = 16
_MAX_COLS = 128


@dataclass(frozen=True, slots=True)
class Slice:
    """Members that share one loop over rows; `external`: ids of their results that others read."""

    members: tuple[Member, ...]
    external: frozenset[int]


def split(rows: int, members: Sequence[Member], external: frozenset[int]) -> tuple[Slice, ...]:
    """Return the loops over rows that a region is emitted as, in order; members keep their order within one."""
    whole = (Slice(tuple(members), external),)
    reduced = [operand.type.cols for stmt in members if _reduces(stmt) for operand in _operands(stmt)]
    if rows < _MIN_ROWS or not reduced or max(reduced) > _MAX_COLS:
        return whole
    places = _places(members)
    cheap: set[int] = set()
    for stmt in members:
        if isinstance(stmt, k.Compute) and _is_cheap(stmt, external) and not any(o.id in cheap for o in _operands(stmt)):
            cheap.add(stmt.result.id)
    slices: list[list[Member]] = []
    for place in sorted(set(places.values())):
        chosen = [stmt for stmt in members if places[id(stmt)] == place]
        needed = {o.id for stmt in chosen for o in _operands(stmt)}
        repeated: list[Member] = [stmt for stmt in members if isinstance(stmt, k.Compute) and stmt.result.id in needed & cheap
                                  and places[id(stmt)] < place]
        slices.append([*repeated, *chosen])
    out: list[Slice] = []
    for at, chosen in enumerate(slices):
        later = {o.id for other in slices[at + 1:] for stmt in other for o in _operands(stmt)} - cheap
        own = {stmt.result.id for stmt in chosen if isinstance(stmt, k.Compute | k.Read)}
        out.append(Slice(tuple(chosen), frozenset(own & (later | external))))
    return tuple(out)


def _places(members: Sequence[Member]) -> dict[int, int]:
    """Return the number of each member's loop: even for columns, odd for what is computed once a row; stores of state last."""
    level: dict[int, int] = {}
    places: dict[int, int] = {}
    for stmt in members:
        if isinstance(stmt, k.Store | k.Write):
            continue
        at = max((level[o.id] for o in _operands(stmt) if o.id in level), default=0)
        wide = stmt.result.type.cols > 1 or _reduces(stmt) or _reduces_columns(stmt)
        places[id(stmt)] = at + at % 2 if wide else at + 1 - at % 2
        level[stmt.result.id] = places[id(stmt)] + (1 if _reduces(stmt) else 0)
    last = max(places.values(), default=0)
    for stmt in members:
        if isinstance(stmt, k.Store | k.Write):
            places[id(stmt)] = last + (last % 2 if stmt.value.type.cols > 1 else 1 - last % 2)
    return places


def _operands(stmt: Member) -> tuple[k.Value, ...]:
    match stmt:
        case k.Compute(_, _, operands):
            return tuple(o for o in operands if isinstance(o, k.Value))
        case k.Store(_, value) | k.Write(_, value):
            return (value,)
        case k.Read():
            return ()


def _reduces(stmt: Member) -> bool:
    if not isinstance(stmt, k.Compute) or not isinstance(find(stmt.op), RowReduce):
        return False
    return any(operand.type.cols > 1 for operand in _operands(stmt))


def _reduces_columns(stmt: Member) -> bool:
    return isinstance(stmt, k.Compute) and isinstance(find(stmt.op), ColReduce)


def _is_cheap(stmt: k.Compute, external: frozenset[int]) -> bool:
    """Tell whether a wide result of one operator is better computed again than kept."""
    entry = find(stmt.op)
    operator = isinstance(entry, Elementwise) and isinstance(entry.c, Operator) and entry.c.text != "/"
    return (operator or isinstance(entry, Expand)) and stmt.result.type.cols > 1 and stmt.result.id not in external
