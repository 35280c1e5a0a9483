"""Derive the run-time checks of a plan that keep every task inside its tensors, and hoist them out of loops.

A check whose sides are affine in the variable of a loop with constant bounds leaves the loop: it is tested for the extreme iterations only.
Redundant checks are dropped. All checks run before the first task is submitted, except late ones; a check in a branch of a fork runs if
that branch is taken.

>>> # for b in range(4): 0 <= b <= X.shape[0] - 1          becomes    0 <= 3 <= X.shape[0] - 1

A check is late if it, or the control flow around it, depends on elements that tasks write or on token payloads. `Late` finds the late
checks with a fixed-point iteration over slots; the orchestration tests them when it reaches their item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import (
    Branch,
    Choice,
    Consume,
    Do,
    Flow,
    Loop,
    Receive,
    Send,
    Sequence,
    Silent,
    Through,
    assignments,
    children,
    evaluations,
    walk,
    with_bodies,
)
from pto_wsp.ir.plan import Check, Precondition
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.scalar import Op
from pto_wsp.ir.waits import waited_for
from pto_wsp.npu.plan.model import Launch, NpuChoice, NpuEvaluating, NpuItem, NpuLoop, NpuPlan
from pto_wsp.values import dataclass

Checked: TypeAlias = Launch | NpuEvaluating | Through[Precondition]


class Late:
    """The values and checks of a plan that are known only after tasks have run. Items are keyed by identity: two loops may be equal."""

    def __init__(self, plan: NpuPlan) -> None:
        self._written = {slot.ref.id for slot in plan.tensors if waited_for(slot)}
        # Slots and variables that hold what tasks have computed, or what a token has brought.
        self._values: set[s.Scalar] = {var for item in walk(plan.body) if isinstance(item, Receive | Consume) for var in item.vars}
        self._checks: dict[int, tuple[Check, ...]] = {}
        n_known = -1
        while n_known != len(self._values):          # iterate to a fixed point: a slot set late in a loop is late in the next iteration
            n_known = len(self._values)
            self._walk(plan.body, late=False)

    def checks_of(self, item: Checked) -> tuple[Check, ...]:
        """Return the late checks of an item, which the orchestration tests when it reaches the item."""
        return self._checks.get(id(item), ())

    def early_checks_of(self, item: Checked) -> tuple[Check, ...]:
        """Return the checks of an item that can be tested before any task is submitted."""
        late = self.checks_of(item)
        return tuple(check for check in item.note.checks if not any(check is other for other in late))

    def is_late(self, *nodes: s.Scalar) -> bool:
        """Return whether any of the scalars depends on results of tasks."""
        return any(leaf in self._values or (isinstance(leaf, s.Element) and leaf.tensor.id in self._written)
                   for node in nodes for leaf in s.leaves(node))

    def waited_for(self, root: object) -> tuple[s.Element, ...]:
        """Return the elements in `root` that tasks write, each after the elements that index it."""
        found = [node for node in nodes(root) if isinstance(node, s.Element) and node.tensor.id in self._written] if self._written else []
        return tuple(dict.fromkeys(reversed(found)))

    def _walk(self, item: NpuItem, *, late: bool) -> None:
        match item:
            case Do(launch):
                self._note(launch, late=late)
            case Send():
                self._note(item, late=late)
            case Consume(body=body):
                self._walk(body, late=True)
            case Loop(start=start, stop=stop, step=step, through=through):
                self._note(item, late=late)
                late = late or self.is_late(start, stop, step)
                if through is not None:
                    self._note(through, late=late)
                    if self.is_late(through.value):
                        self._values.add(through.var)
                self._walk(item.body, late=late)
            case Choice(branches, otherwise):
                for way in branches:
                    self._note(way, late=late)
                    late = late or self.is_late(way.condition)
                    self._walk(way.body, late=late)
                self._walk(otherwise, late=late)
            case _:
                for each in evaluations(item):
                    self._note(each.node, late=late)
                self._values.update(place for place, value in assignments(item) if late or self.is_late(value))
                for inner in children(item):
                    self._walk(inner, late=late)

    def _note(self, item: Checked, *, late: bool) -> None:
        checks = tuple(check for check in item.note.checks if late or self.is_late(check.value, check.lower, check.upper))
        if checks:
            self._checks[id(item)] = checks


# -- guards ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GuardLet:
    """A variable binding in each iteration of the enclosing loop."""

    var: s.Var
    value: s.Scalar


_Comparison: TypeAlias = tuple[s.Scalar, s.Scalar, s.Scalar]
# A loop, a choice of two, and a slot that later guards read, around checks and bindings.
Guard: TypeAlias = Flow[Check | GuardLet, Precondition, int, int, int]
_NOTE = Precondition()      # guards stand before all tasks: nothing is checked or waited for in front of their scalars


def guards_of(plan: NpuPlan, late: Late | None = None) -> tuple[Guard, ...]:
    """Return the checks made before any task is submitted, ordered so that every read is guarded by an earlier check."""
    guards = _once(_guards(plan.body, late or Late(plan)))
    needed: frozenset[int] = frozenset()
    while (found_slots := slots_read(guards, needed)) != needed:
        needed = found_slots
    return _drop_repeated(_prune(guards, needed), frozenset())


def slots_read(guards: Iterable[Guard], needed: frozenset[int]) -> frozenset[int]:
    """Return the slots that guards read, and the slots that values of `needed` slots depend on."""
    found = set(needed)

    def note(*nodes: s.Scalar) -> None:
        found.update(leaf.slot for node in nodes for leaf in s.leaves(node) if isinstance(leaf, s.SlotValue))

    for guard in guards:
        match guard:
            case Do(Check(value=value, lower=lower, upper=upper)):
                note(value, lower, upper)
            case Do(GuardLet(value=value)):
                note(value)
            case _ if assignments(guard):
                note(*(value for place, value in assignments(guard) if place.slot in needed))
            case _:
                inside = tuple(inner for body in children(guard) for inner in children(body))
                inner_slots = slots_read(inside, needed)
                if _prune(inside, inner_slots):
                    note(*(scalar for each in evaluations(guard) for scalar in each.scalars))
                found |= inner_slots
    return frozenset(found)


def _prune(guards: Iterable[Guard], needed: frozenset[int]) -> tuple[Guard, ...]:
    """Return the guards without unneeded slot assignments and without empty loops and forks."""
    kept: list[Guard] = []
    for guard in guards:
        if slots := assignments(guard):
            kept += [guard] if any(place.slot in needed for place, _ in slots) else []
        else:
            kept += _with_bodies(guard, lambda inside: _prune(inside, needed))
    return tuple(kept)


def _with_bodies(guard: Guard, change: Callable[[tuple[Guard, ...]], tuple[Guard, ...]]) -> list[Guard]:
    """Return a guard with its bodies changed; nothing for a loop or a fork in which nothing is left to check or to set."""
    if isinstance(guard, Do):
        return [guard]
    made = with_bodies(guard, lambda body: Sequence(change(body.items)))
    left = (inner for body in children(made) for inner in children(body))
    return [made] if any(not (isinstance(inner, Do) and isinstance(inner.leaf, GuardLet)) for inner in left) else []


def _drop_repeated(guards: Iterable[Guard], held: frozenset[_Comparison]) -> tuple[Guard, ...]:
    """Return the guards without comparisons that an earlier guard has made. `held`: the comparisons made so far."""
    kept: list[Guard] = []
    for guard in guards:
        match guard:
            case Do(Check(value=value, lower=lower, upper=upper)):
                if (value, lower, upper) not in held:
                    kept.append(guard)
                    held |= frozenset() if _reads_slots(guard) else {(value, lower, upper)}
            case _ if assignments(guard):
                kept.append(guard)
            case _:
                kept += _with_bodies(guard, partial(_drop_repeated, held=held))
    return tuple(kept)


def _guards(item: NpuItem, late: Late) -> Iterator[Guard]:
    evaluated, slots = evaluations(item), assignments(item)
    match item:
        case Do(launch):
            yield from map(Do, late.early_checks_of(launch))
        case Send():
            yield from map(Do, late.early_checks_of(item))
        case Consume():
            pass           # nobody knows yet how many tokens come, or what they carry
        case Loop():
            yield from map(Do, late.early_checks_of(item))
            if not late.is_late(item.start, item.stop, item.step):
                yield from _around(item, _once(_iteration_guards(item, late)))
        case Choice():
            yield from _ways(item, 0, late)
        case Silent():
            for each in evaluated:
                yield from map(Do, late.early_checks_of(each.node))
            if slots and not late.is_late(*(place for place, _ in slots)):
                yield replace(item, note=_NOTE)
        case _:
            for inner in children(item):
                yield from _guards(inner, late)


def _iteration_guards(loop: NpuLoop, late: Late) -> Iterator[Guard]:
    if loop.through is not None:
        yield from map(Do, late.early_checks_of(loop.through))
        if not late.is_late(loop.through.value):
            yield Do(GuardLet(loop.through.var, loop.through.value))
    yield from _guards(loop.body, late)


def _ways(fork: NpuChoice, position: int, late: Late) -> Iterator[Guard]:
    """What is checked from a way of a fork on: its condition is asked where no earlier one holds."""
    if position == len(fork.branches):
        yield from _guards(fork.otherwise, late)
        return
    way = fork.branches[position]
    yield from map(Do, late.early_checks_of(way))
    if not late.is_late(way.condition):      # a late condition leaves the branch unknown
        then, other = Sequence(_once(_guards(way.body, late))), Sequence(_once(_ways(fork, position + 1, late)))
        yield Choice((Branch(way.condition, then, _NOTE),), other)


def _once(guards: Iterable[Guard]) -> tuple[Guard, ...]:
    """Return the guards without those that always hold and without those that a sharper guard implies."""
    kept: dict[object, Guard] = {}
    for guard in guards:
        check = _check_of(guard)
        if check is None or _reads_slots(guard):
            kept.setdefault(len(kept) if _reads_slots(guard) else guard, guard)
        elif not _always_holds(check):
            key = _subject(check)
            sharpest = _check_of(kept.get(key))
            if sharpest is None or _number(check.value) > _number(sharpest.value):
                kept[key] = guard
    return tuple(kept.values())


def _check_of(guard: Guard | None) -> Check | None:
    """Return the check that a guard is; None of anything else."""
    return guard.leaf if isinstance(guard, Do) and isinstance(guard.leaf, Check) else None


def _reads_slots(guard: Guard) -> bool:
    """Return whether a guard may mean something else when repeated, because it reads or sets a slot."""
    return any(isinstance(node, s.SlotValue | Silent) for node in nodes(guard))


def _subject(check: Check) -> object:
    """Return a key of checks that imply one another, such as 0 <= k <= X.shape[0] - 1: the check with the largest k implies the others."""
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


def _around(loop: NpuLoop, guards: tuple[Guard, ...]) -> Iterator[Guard]:
    match loop.start, loop.stop, loop.step:
        case s.Const(start), s.Const(stop), s.Const(step):
            iterations = range(int(start), int(stop), int(step))
            if not iterations:
                return
            inside: list[Guard] = []
            for guard in guards:
                check = _check_of(guard)
                outside = None if check is None or _is_bound(check, loop) else _at_extremes(check, loop.var, iterations)
                if outside is None:
                    inside.append(guard)
                else:
                    yield from map(Do, outside)
        case _:
            inside = list(guards)
    if inside:
        yield Loop(loop.var, loop.start, loop.stop, loop.step, True, Sequence(tuple(inside)), _NOTE)


def _is_bound(check: Check, loop: NpuLoop) -> bool:
    """Tell whether a check has to stay in its loop: it may differ between iterations in what is no number times the variable."""
    leaves = {leaf for node in (check.value, check.lower, check.upper) for leaf in s.leaves(node)}
    return (loop.through is not None and loop.through.var in leaves) or any(isinstance(leaf, s.SlotValue) for leaf in leaves)


def _at_extremes(check: Check, var: s.Var, iterations: range) -> tuple[Check, ...] | None:
    """Return the check for the extreme iterations, which imply all others; None if a side is not affine in `var`."""
    low, high = s.sub(check.value, check.lower), s.sub(check.upper, check.value)
    slopes = _slope(check.value, var), _slope(check.lower, var), _slope(check.upper, var)
    if None in slopes:
        return None
    value, lower, upper = (slope or 0 for slope in slopes)
    at_low = iterations[0] if value - lower >= 0 else iterations[-1]
    at_high = iterations[0] if upper - value >= 0 else iterations[-1]
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
    """Return the coefficient of `var` in an expression, None if the expression is not affine in `var`."""
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
