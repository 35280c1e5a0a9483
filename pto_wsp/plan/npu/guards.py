"""What must hold at run time for every task of a plan to stay inside its tensors, with as few comparisons as that takes.

A check whose sides are affine in the variable of a loop with known bounds is taken out of the loop: it is made for the turns in which it
comes closest to failing. Everything is checked before the first task is submitted.

>>> # for b in range(4): 0 <= b <= X.shape[0] - 1          becomes    0 <= 3 <= X.shape[0] - 1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from pto_wsp.plan.model import Check
from pto_wsp.plan.npu.model import Block, Launch, NpuItem, NpuPlan, Repeat, Scope, Unordered
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar import Op
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class GuardLoop:
    """Guards for every turn of a loop."""

    var: s.Var
    start: s.Scalar
    stop: s.Scalar
    step: s.Scalar
    body: tuple[Guard, ...]


Guard: TypeAlias = Check | GuardLoop


def guards_of(plan: NpuPlan) -> tuple[Guard, ...]:
    """Return what is checked before anything is submitted, in an order in which nothing is read before it is known to be there."""
    return _once(_guards(plan.body))


def _guards(item: NpuItem) -> Iterator[Guard]:
    match item:
        case Launch():
            yield from item.checks
        case Repeat():
            yield from item.checks
            yield from _around(item, _once(_guards(item.body)))
        case Scope(body=body):
            yield from _guards(body)
        case Unordered(parts) | Block(parts):
            for part in parts:
                yield from _guards(part)


def _once(guards: Iterable[Guard]) -> tuple[Guard, ...]:
    """Return the guards without those that always hold, and without those that another one says more sharply."""
    found: dict[object, Guard] = {}
    for guard in guards:
        if isinstance(guard, GuardLoop):
            found.setdefault(guard, guard)
        elif not _always_holds(guard):
            key = _subject(guard)
            known = found.get(key)
            if not isinstance(known, Check) or _number(guard.value) > _number(known.value):
                found[key] = guard
    return tuple(found.values())


def _subject(check: Check) -> object:
    """Return what checks have in common of which the one with the larger number says it all: 0 <= k <= X.shape[0] - 1."""
    if isinstance(check.value, s.Const) and isinstance(check.lower, s.Const) and check.lower.value <= check.value.value:
        return check.upper
    return check.value, check.lower, check.upper


def _number(node: s.Scalar) -> float:
    return node.value if isinstance(node, s.Const) else 0


def _always_holds(check: Check) -> bool:
    match check.value, check.lower, check.upper:
        case s.Const(value), s.Const(lower), s.Const(upper):
            return lower <= value <= upper
        case _:
            return False


def _around(loop: Repeat, guards: tuple[Guard, ...]) -> Iterator[Guard]:
    match loop.start, loop.stop, loop.step:
        case s.Const(start), s.Const(stop), s.Const(step):
            turns = range(int(start), int(stop), int(step))
            if not turns:
                return
            inside: list[Guard] = []
            for guard in guards:
                outside = _outside(guard, loop.var, turns) if isinstance(guard, Check) else None
                if outside is None:
                    inside.append(guard)
                else:
                    yield from outside
        case _:
            inside = list(guards)
    if inside:
        yield GuardLoop(loop.var, loop.start, loop.stop, loop.step, tuple(inside))


def _outside(check: Check, var: s.Var, turns: range) -> tuple[Check, ...] | None:
    """Return the turns of a check that say all there is to say, None where every turn has to."""
    low, high = s.sub(check.value, check.lower), s.sub(check.upper, check.value)
    slopes = _slope(check.value, var), _slope(check.lower, var), _slope(check.upper, var)
    if None in slopes:
        return None
    value, lower, upper = (slope or 0 for slope in slopes)
    at_low = turns[0] if value - lower >= 0 else turns[-1]
    at_high = turns[0] if upper - value >= 0 else turns[-1]
    if value == lower:
        at_low = at_high
    if value == upper:
        at_high = at_low
    needed = {at for at, side in ((at_low, low), (at_high, high)) if not _is_positive(_at(side, var, at))}
    return tuple(replace(check, value=_at(check.value, var, at), lower=_at(check.lower, var, at), upper=_at(check.upper, var, at))
                 for at in sorted(needed))


def _at(node: s.Scalar, var: s.Var, value: int) -> s.Scalar:
    return s.substitute(node, lambda inner: s.Const(value) if inner == var else None)


def _is_positive(node: s.Scalar) -> bool:
    return isinstance(node, s.Const) and node.value >= 0


def _slope(node: s.Scalar, var: s.Var) -> int | None:
    """Return by how much an expression grows with `var`, None where that is not one number."""
    if var not in s.leaves(node):
        return 0
    match node:
        case s.Var():
            return 1
        case s.Unary(Op.NEG, value):
            inner = _slope(value, var)
            return None if inner is None else -inner
        case s.Binary(Op.ADD | Op.SUB as op, lhs, rhs):
            left, right = _slope(lhs, var), _slope(rhs, var)
            return None if left is None or right is None else left + right if op is Op.ADD else left - right
        case s.Binary(Op.MUL, inner_node, s.Const(factor)) | s.Binary(Op.MUL, s.Const(factor), inner_node) if isinstance(factor, int):
            inner = _slope(inner_node, var)
            return None if inner is None else inner * factor
        case _:
            return None
