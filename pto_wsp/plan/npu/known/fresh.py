"""When an accumulator holds nothing yet: before the first product of it that has terms, as far as that is known before a task runs.

    acc = alloc, init=0
    for j in range(0, n, 1):
        acc += %0 @ %1           fresh where j == 0
    %2 = read acc                fresh where not n > 0
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeAlias

from pto_wsp.errors import CubeError
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Body, walk
from pto_wsp.plan.npu.known.facts import FALSE, TRUE, Facts, both, negated
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar import Op
from pto_wsp.values import dataclass

Conditions: TypeAlias = Mapping[Hashable, s.Scalar]      # by accumulator: when it holds nothing


@dataclass(frozen=True, slots=True)
class Change:
    """What a statement does to an accumulator. `clears`: it held nothing from here on; then come terms where `terms` holds."""

    accumulator: Hashable
    name: str
    clears: bool
    terms: s.Scalar = FALSE


def fresh_before(body: Body, facts: Facts, change: Callable[[k.Stmt], Change | None]) -> Mapping[int, Conditions]:
    """Return the condition of each accumulator before each statement, by id() of the statement.

    Raises: N104 at a loop that adds the first product in a turn that is not its first.
    """
    found: dict[int, Conditions] = {}
    _follow(body, {}, facts, change, found)
    return found


def _follow(body: Body, before: Conditions, facts: Facts, change: Callable[[k.Stmt], Change | None],
            found: dict[int, Conditions]) -> Conditions:
    now = dict(before)
    for stmt in body:
        found[id(stmt)] = dict(now)
        match stmt:
            case k.For():
                now = _after_loop(stmt, now, facts, change, found)
            case k.If():
                then = _follow(stmt.then, now, facts, change, found)
                other = _follow(stmt.other, now, facts, change, found)
                condition = facts.settle(stmt.condition)
                now = {key: then[key] if then[key] == other[key] else s.Select(condition, then[key], other[key]) for key in now}
            case _:
                made = change(stmt)
                if made is not None:
                    start = TRUE if made.clears else now.get(made.accumulator, TRUE)
                    now[made.accumulator] = both(start, negated(made.terms))
    return now


def _after_loop(stmt: k.For, before: dict[Hashable, s.Scalar], facts: Facts, change: Callable[[k.Stmt], Change | None],
                found: dict[int, Conditions]) -> dict[Hashable, s.Scalar]:
    start, stop = facts.settle(stmt.start), facts.settle(stmt.stop)
    changed = {made.accumulator: made.name for inner in walk(stmt.body) if (made := change(inner)) is not None}
    first = s.Binary(Op.EQ, stmt.var, start)
    entry = {key: both(value, first) if key in changed else value for key, value in before.items()}
    after = _follow(stmt.body, entry, facts, change, found)
    runs = facts.at_least_one(facts.settle(s.sub(stop, start)))
    for key in before:
        if key in changed and after[key] != FALSE:
            raise CubeError(f"`{changed[key]}` is first added to in a turn of a loop that is known only at run time", stmt.span,
                            expected="a loop of which every turn adds a product, or products before the loop",
                            help="leave turns out by the loop's bounds, or keep the sum in the workload with one task a turn")
    return {key: both(value, negated(runs)) if key in changed else value for key, value in before.items()}
