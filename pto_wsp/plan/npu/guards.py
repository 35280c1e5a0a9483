"""What must hold at run time for every task of a plan to stay inside its tensors, with as few comparisons as that takes.

A check whose sides are affine in the variable of a loop with known bounds is taken out of the loop: it is made for the turns in which it
comes closest to failing. Everything is checked before the first task is submitted, but for what depends on what tasks compute (late.py).
What stands in a way of a fork is checked where that way is taken.

>>> # for b in range(4): 0 <= b <= X.shape[0] - 1          becomes    0 <= 3 <= X.shape[0] - 1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from pto_wsp.expr.rewrite import nodes
from pto_wsp.plan.model import Check, Send, SetSlot
from pto_wsp.plan.npu.late import Late
from pto_wsp.plan.npu.model import Drain, Fork, Launch, NpuItem, NpuPlan, Repeat
from pto_wsp.plan.npu.walk import inner_items
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


@dataclass(frozen=True, slots=True)
class GuardLet:
    """In each turn of the loop around this, a variable is a value."""

    var: s.Var
    value: s.Scalar


@dataclass(frozen=True, slots=True)
class GuardFork:
    """Guards for where a condition holds, and for where it does not."""

    condition: s.Scalar
    then: tuple[Guard, ...]
    other: tuple[Guard, ...]


@dataclass(frozen=True, slots=True)
class GuardSlot:
    """A slot of the orchestrator gets a value that guards behind this depend on."""

    slot: int
    value: s.Scalar


_Comparison: TypeAlias = tuple[s.Scalar, s.Scalar, s.Scalar]
Guard: TypeAlias = Check | GuardLoop | GuardLet | GuardFork | GuardSlot


def guards_of(plan: NpuPlan, late: Late | None = None) -> tuple[Guard, ...]:
    """Return what is checked before anything is submitted, in an order in which nothing is read before it is known to be there."""
    guards = _once(_guards(plan.body, late or Late(plan)))
    needed: frozenset[int] = frozenset()
    while (found := slots_read(guards, needed)) != needed:
        needed = found
    return _not_repeated(_pruned(guards, needed), frozenset())


def slots_read(guards: Iterable[Guard], needed: frozenset[int]) -> frozenset[int]:
    """Return the slots that guards read, with those that the values of `needed` slots are made of."""
    found = set(needed)

    def note(*nodes: s.Scalar) -> None:
        found.update(leaf.slot for node in nodes for leaf in s.leaves(node) if isinstance(leaf, s.SlotValue))

    for guard in guards:
        match guard:
            case Check(value=value, lower=lower, upper=upper):
                note(value, lower, upper)
            case GuardLet(value=value):
                note(value)
            case GuardSlot(slot, value):
                if slot in needed:
                    note(value)
            case GuardLoop(_, start, stop, step, body):
                inner = slots_read(body, needed)
                if _pruned(body, inner):
                    note(start, stop, step)
                found |= inner
            case GuardFork(condition, then, other):
                inner = slots_read((*then, *other), needed)
                if _pruned((*then, *other), inner):
                    note(condition)
                found |= inner
    return frozenset(found)


def _pruned(guards: Iterable[Guard], needed: frozenset[int]) -> tuple[Guard, ...]:
    """Return the guards without slots that none of them needs, and without what is empty then."""
    found: list[Guard] = []
    for guard in guards:
        match guard:
            case GuardSlot(slot):
                found += [guard] if slot in needed else []
            case GuardLoop(body=body):
                found += _loop(guard, _pruned(body, needed))
            case GuardFork(condition, then, other):
                found += _fork(condition, _pruned(then, needed), _pruned(other, needed))
            case _:
                found.append(guard)
    return tuple(found)


def _loop(loop: GuardLoop, body: tuple[Guard, ...]) -> list[Guard]:
    return [replace(loop, body=body)] if any(not isinstance(one, GuardLet) for one in body) else []


def _fork(condition: s.Scalar, then: tuple[Guard, ...], other: tuple[Guard, ...]) -> list[Guard]:
    return [GuardFork(condition, then, other)] if then or other else []


def _not_repeated(guards: Iterable[Guard], held: frozenset[_Comparison]) -> tuple[Guard, ...]:
    """Return the guards without comparisons that were made before, whatever was taken since. `held`: those that were."""
    found: list[Guard] = []
    for guard in guards:
        match guard:
            case Check(value=value, lower=lower, upper=upper):
                if (value, lower, upper) not in held:
                    found.append(guard)
                    held |= frozenset() if _reads_slots(guard) else {(value, lower, upper)}
            case GuardLoop(body=body):
                found += _loop(guard, _not_repeated(body, held))
            case GuardFork(condition, then, other):
                found += _fork(condition, _not_repeated(then, held), _not_repeated(other, held))
            case _:
                found.append(guard)
    return tuple(found)


def _guards(item: NpuItem, late: Late) -> Iterator[Guard]:
    match item:
        case Launch() | Send():
            yield from late.early_checks_of(item)
        case Drain():
            pass           # nobody knows yet how many tokens come, or what they carry
        case SetSlot(slot, value):
            yield from late.early_checks_of(item)
            if not late.is_late(s.SlotValue(slot)):
                yield GuardSlot(slot, value)
        case Repeat():
            yield from late.early_checks_of(item)
            if not late.is_late(item.start, item.stop, item.step):
                yield from _around(item, _once(_turn(item, late)))
        case Fork():
            yield from _ways(item, 0, late)
        case _:
            for inner in inner_items(item):
                yield from _guards(inner, late)


def _turn(loop: Repeat, late: Late) -> Iterator[Guard]:
    if loop.lead is not None:
        yield from late.early_checks_of(loop.lead)
        if not late.is_late(loop.lead.value):
            yield GuardLet(loop.lead.var, loop.lead.value)
    yield from _guards(loop.body, late)


def _ways(fork: Fork, position: int, late: Late) -> Iterator[Guard]:
    """What is checked from a way of a fork on: its condition is asked where no earlier one holds."""
    if position == len(fork.ways):
        yield from _guards(fork.otherwise, late)
        return
    way = fork.ways[position]
    yield from late.early_checks_of(way)
    if not late.is_late(way.condition):      # else nobody knows yet what is taken
        yield GuardFork(way.condition, _once(_guards(way.body, late)), _once(_ways(fork, position + 1, late)))


def _once(guards: Iterable[Guard]) -> tuple[Guard, ...]:
    """Return the guards without those that always hold, and without those that another one says more sharply."""
    found: dict[object, Guard] = {}
    for guard in guards:
        if not isinstance(guard, Check) or _reads_slots(guard):
            found.setdefault(len(found) if _reads_slots(guard) else guard, guard)
        elif not _always_holds(guard):
            key = _subject(guard)
            known = found.get(key)
            if not isinstance(known, Check) or _number(guard.value) > _number(known.value):
                found[key] = guard
    return tuple(found.values())


def _reads_slots(guard: Guard) -> bool:
    """Tell whether a guard may say something else where it stands again."""
    return any(isinstance(node, s.SlotValue | GuardSlot) for node in nodes(guard))


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
                outside = _outside(guard, loop.var, turns) if isinstance(guard, Check) and not _is_bound(guard, loop) else None
                if outside is None:
                    inside.append(guard)
                else:
                    yield from outside
        case _:
            inside = list(guards)
    if inside:
        yield GuardLoop(loop.var, loop.start, loop.stop, loop.step, tuple(inside))


def _is_bound(check: Check, loop: Repeat) -> bool:
    """Tell whether a check has to stay in its loop: it may differ from turn to turn in what is no number times the variable."""
    leaves = {leaf for node in (check.value, check.lower, check.upper) for leaf in s.leaves(node)}
    return (loop.lead is not None and loop.lead.var in leaves) or any(isinstance(leaf, s.SlotValue) for leaf in leaves)


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
