"""Check that every view lies inside its tensor, with the declared shapes, in every iteration.

Indices that are affine in loop variables with constant, independent bounds are extreme at corners of the iteration box. All other checks go
to the affine solver, with the loops and conditions around them. What depends on a run's bindings or on a table's contents stays guarded at
run time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pto_wsp.check.iterations import Example, Impossible, Iterations, Level, LevelCondition
from pto_wsp.check.verdict import Finding, Verdict
from pto_wsp.errors import ViewBoundsError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Choice, Consume, Do, Loop, Pipeline, Sequence, Sides
from pto_wsp.ir.plan import Check, CheckKind, Item, PlanLoop, Precondition, TaskPlan
from pto_wsp.ir.plan_walk import notes_of
from pto_wsp.ir.view import as_declared, declared
from pto_wsp.passes.schedule_keys import SCHEDULE_CHECKS, schedule_error
from pto_wsp.source import argument_span
from pto_wsp.values import dataclass

_DECLARED = "for the shapes declared; other bindings are guarded at run time"


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ coefficient · variable, over loop variables by id."""

    constant: int
    terms: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class LoopRange:
    """The values of a loop variable: name, first, last. An empty loop has no span."""

    name: str
    first: int
    last: int


def check_bounds(plan: TaskPlan) -> tuple[Finding, ...]:
    """Return a finding for each of the plan's checks, in the orchestrator's order."""
    found: list[Finding] = []
    written = frozenset(slot.ref.id for slot in plan.tensors if slot.writes)

    def note(before: Precondition, around: _Surroundings) -> None:
        iterations: Iterations | None = None
        for check in before.checks:
            finding = _decide(check, around.spans)
            if finding.verdict is not Verdict.PROVED and (finding.error is None or not around.sure):
                iterations = iterations or Iterations(around.levels, written)
                finding = _ask(check, iterations, finding)
            found.append(finding)

    def walk(item: Item, around: _Surroundings) -> None:
        match item:
            case Do(task):
                note(task.note, around)
            case Loop():
                note(item.note, around)
                spans = None if around.spans is None else _with_loop(around.spans, item)
                # a loop with unknown bounds may have no iteration
                inside = _Surroundings(spans, around.sure and spans is not around.spans, (*around.levels, item))
                if item.through is not None:
                    note(item.through.note, replace(inside, levels=(*around.levels, replace(item, through=None))))
                walk(item.body, inside)
            case Choice(branches, otherwise):
                for branch in branches:
                    note(branch.note, around)
                    always = isinstance(branch.condition, s.Const) and bool(branch.condition.value)
                    never = isinstance(branch.condition, s.Const) and not always
                    held, refused = ((*around.levels, LevelCondition(branch.condition, holds)) for holds in (True, False))
                    walk(branch.body, _Surroundings(None if never else around.spans, around.sure and always, held))
                    around = _Surroundings(None if always else around.spans, around.sure and never, refused)
                walk(otherwise, around)
            case Sides(sides):
                for side in sides:
                    walk(side, around)
            case Pipeline(processes):
                for process in processes:
                    walk(process.body, around)
            case Consume():
                walk(item.body, replace(around, sure=False, levels=(*around.levels, item)))
            case Sequence(items):
                for inner in items:
                    walk(inner, around)
            case _:
                for before in notes_of(item):
                    note(before, around)

    walk(plan.body, _Surroundings({}, True, ()))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """The context of a place. `spans`: None if the place is never reached; `sure`: every iteration reaches the place."""

    spans: Mapping[int, LoopRange] | None
    sure: bool
    levels: tuple[Level, ...]


def _ask(check: Check, iterations: Iterations, finding: Finding) -> Finding:
    """Return the solver's finding on a check that `finding` leaves open or decides as if every iteration reached the check."""
    below, above = iterations.where_above(check.lower, check.value), iterations.where_above(check.value, check.upper)
    if isinstance(below, Impossible) and isinstance(above, Impossible):
        return replace(finding, verdict=Verdict.PROVED, detail=_DECLARED, error=None)
    for side in (below, above):
        if isinstance(side, Example):
            names = {leaf.id: leaf.name for node in (check.value, check.lower, check.upper) for leaf in s.leaves(node)
                     if isinstance(leaf, s.Var) and leaf.id in side.point}
            return _bounds_finding(finding.check, check, side.point, names)
    if finding.error is None:
        return finding
    return replace(finding, verdict=Verdict.NOT_PROVED, error=None,
                   detail=f"guarded at run time: outside where {finding.detail}, if it comes to that")


def _with_loop(spans: Mapping[int, LoopRange], loop: PlanLoop) -> Mapping[int, LoopRange] | None:
    start, stop, step = (_constant_of(declared(bound)) for bound in (loop.start, loop.stop, loop.step))
    if start is None or stop is None or step is None:
        return spans                      # unknown range: checks that depend on the variable stay open
    if stop <= start:
        return None
    return {**spans, loop.var.id: LoopRange(loop.var.name, start, start + (stop - 1 - start) // step * step)}


def _constant_of(node: s.Scalar) -> int | None:
    if isinstance(node, s.SymbolRef) and node.default is not None:
        return node.default               # the initial extent of a DenseDyn axis
    return int(node.value) if isinstance(node, s.Const) else None


def _decide(check: Check, spans: Mapping[int, LoopRange] | None) -> Finding:
    name = f"{check.kind.name.lower()} {check.subject}"
    if spans is None:
        return Finding(name, Verdict.PROVED, "it never comes to that")
    low = _affine(declared(s.sub(check.value, check.lower)))
    high = _affine(declared(s.sub(check.upper, check.value)))
    if low is None or high is None or not (low.terms.keys() | high.terms.keys()) <= spans.keys():
        return Finding(name, Verdict.NOT_PROVED, "guarded at run time")
    for side in (low, high):
        least, where = _least(side, spans)
        if least < 0:
            others = {var: span.first for var, span in spans.items()}
            return _bounds_finding(name, check, {**others, **where}, {var: spans[var].name for var in where})
    return Finding(name, Verdict.PROVED, _DECLARED)


def _least(expr: Affine, spans: Mapping[int, LoopRange]) -> tuple[int, dict[int, int]]:
    """Return the minimum of an affine expression over a box, and the corner where it is reached."""
    corner = {var: spans[var].first if factor > 0 else spans[var].last for var, factor in expr.terms.items()}
    return expr.constant + sum(factor * corner[var] for var, factor in expr.terms.items()), corner


def _affine(node: s.Scalar) -> Affine | None:
    match node:
        case s.Const(value):
            return Affine(int(value), {})
        case s.Var(_, var):
            return Affine(0, {var: 1})
        case s.Unary(s.Op.NEG, value):
            inner = _affine(value)
            return None if inner is None else _scale(inner, -1)
        case s.Binary(s.Op.ADD | s.Op.SUB as op, lhs, rhs):
            left, right = _affine(lhs), _affine(rhs)
            if left is None or right is None:
                return None
            right = right if op is s.Op.ADD else _scale(right, -1)
            terms = {v: left.terms.get(v, 0) + right.terms.get(v, 0) for v in (*left.terms, *right.terms)}
            return Affine(left.constant + right.constant, {v: k for v, k in terms.items() if k})
        case s.Binary(s.Op.MUL, lhs, rhs):
            left, right = _affine(lhs), _affine(rhs)
            if left is None or right is None or (left.terms and right.terms):
                return None
            return _scale(left, right.constant) if left.terms else _scale(right, left.constant)
        case _:
            return None


def _scale(expr: Affine, factor: int) -> Affine:
    return Affine(expr.constant * factor, {v: k * factor for v, k in expr.terms.items()} if factor else {})


_ADVICE = {CheckKind.ELEMENT: "give the tensor an entry for every iteration",
           CheckKind.RANK: "write (r + 1) % n for the next rank of a ring"}


def _bounds_finding(name: str, check: Check, where: Mapping[int, int], names: Mapping[int, str]) -> Finding:
    """Return the finding of a check that fails at the values `where` of loop variables; `names`: the variables to name in the example."""
    def at(node: s.Scalar) -> int:
        return int(s.evaluate(as_declared(node), lambda leaf: where.get(leaf.id, 0) if isinstance(leaf, s.Var) else 0))

    value, lower, upper = at(check.value), at(check.lower), at(check.upper)
    point = ", ".join(f"{shown} = {where[var]}" for var, shown in names.items())
    if check.kind in SCHEDULE_CHECKS:
        notes = (f"for example where {point}",) if point else ()
        return Finding(name, Verdict.COUNTEREXAMPLE, point, schedule_error(check, value, upper, notes))
    error = ViewBoundsError(f"{check.kind.value}: `{check.subject}`", argument_span(check.span, check.param),
                            expected=f"{lower} .. {upper}" if upper >= lower else "nothing: it is empty", found=str(value),
                            help=_ADVICE.get(check.kind,
                                             "bound the loop by the tensor, or use .clip(...) for a last block that may be short"),
                            notes=(f"for example where {point}",) if point else ())
    return Finding(name, Verdict.COUNTEREXAMPLE, point, error)
