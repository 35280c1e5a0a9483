"""Bounds: does every view lie inside its tensor, with the shapes declared, in every iteration?

Indices that are affine in loop variables with constant, independent bounds are decided exactly: such an expression takes its extremes
at corners of the iteration box. Whatever else there is stays guarded at run time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pto_wsp.errors import PtoError, ViewBoundsError
from pto_wsp.plan.model import Check, CheckKind, Choice, Consume, Item, Loop, Pipeline, Send, Sequence, SetSlot, Sides, Submit, TaskPlan
from pto_wsp.source import argument_span
from pto_wsp.types import scalar as s
from pto_wsp.types.view import declared
from pto_wsp.values import dataclass
from pto_wsp.verify.verdict import Finding, Verdict


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ coefficient · variable, over loop variables by id."""

    constant: int
    terms: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Span:
    """The values of a loop variable: first, last, and its name. Empty loops have no span."""

    name: str
    first: int
    last: int


def check_bounds(plan: TaskPlan) -> tuple[Finding, ...]:
    """Return a verdict for each of the plan's checks, in the orchestrator's order."""
    found: list[Finding] = []

    def note(checks: tuple[Check, ...], spans: Mapping[int, Span] | None, sure: bool) -> None:
        decided = (_decide(check, spans) for check in checks)
        found.extend(finding if sure or finding.error is None else replace(finding, verdict=Verdict.NOT_PROVED, error=None,
                     detail=f"guarded at run time: outside where {finding.detail}, if it comes to that") for finding in decided)

    def walk(item: Item, spans: Mapping[int, Span] | None, sure: bool) -> None:
        """`spans` is None where nothing surely ever runs; not `sure`: what is here may run for some iterations alone."""
        match item:
            case Submit() | SetSlot():
                note(item.checks, spans, sure)
            case Loop():
                note(item.checks, spans, sure)
                inside = None if spans is None else _with_loop(spans, item)
                runs = sure and inside is not spans      # of how many turns nothing is known, there may be none
                if item.through is not None:
                    note(item.through.checks, inside, runs)
                walk(item.body, inside, runs)
            case Choice(branches, otherwise):
                for branch in branches:
                    note(branch.checks, spans, sure)
                    always = isinstance(branch.condition, s.Const) and bool(branch.condition.value)
                    never = isinstance(branch.condition, s.Const) and not always
                    walk(branch.body, None if never else spans, sure and always)
                    sure, spans = sure and never, None if always else spans
                walk(otherwise, spans, sure)
            case Sides(sides):
                for side in sides:
                    walk(side, spans, sure)
            case Send():
                note(item.checks, spans, sure)
            case Pipeline(processes):
                for process in processes:
                    walk(process.body, spans, sure)
            case Consume():
                walk(item.body, spans, False)    # perhaps no token comes
            case Sequence(items):
                for inner in items:
                    walk(inner, spans, sure)
            case _:
                pass

    walk(plan.body, {}, sure=True)
    return tuple(found)


def _with_loop(spans: Mapping[int, Span], loop: Loop) -> Mapping[int, Span] | None:
    start, stop, step = (_known(declared(bound)) for bound in (loop.start, loop.stop, loop.step))
    if start is None or stop is None or step is None:
        return spans                      # the variable is unknown: what depends on it is not decided
    if stop <= start:
        return None
    return {**spans, loop.var.id: Span(loop.var.name, start, start + (stop - 1 - start) // step * step)}


def _known(node: s.Scalar) -> int | None:
    if isinstance(node, s.SymbolRef) and node.default is not None:
        return node.default               # the extent that a DenseDyn axis starts with
    return int(node.value) if isinstance(node, s.Const) else None


def _decide(check: Check, spans: Mapping[int, Span] | None) -> Finding:
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
            error = _error(check, spans, where)
            return Finding(name, Verdict.COUNTEREXAMPLE, ", ".join(f"{spans[v].name} = {k}" for v, k in where.items()), error)
    return Finding(name, Verdict.PROVED, "for the shapes declared; other bindings are guarded at run time")


def _least(expr: Affine, spans: Mapping[int, Span]) -> tuple[int, dict[int, int]]:
    """Return the least value of an affine expression over a box, and the corner where it is taken."""
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
            return None if inner is None else _scaled(inner, -1)
        case s.Binary(s.Op.ADD | s.Op.SUB as op, lhs, rhs):
            left, right = _affine(lhs), _affine(rhs)
            if left is None or right is None:
                return None
            right = right if op is s.Op.ADD else _scaled(right, -1)
            terms = {v: left.terms.get(v, 0) + right.terms.get(v, 0) for v in (*left.terms, *right.terms)}
            return Affine(left.constant + right.constant, {v: k for v, k in terms.items() if k})
        case s.Binary(s.Op.MUL, lhs, rhs):
            left, right = _affine(lhs), _affine(rhs)
            if left is None or right is None or (left.terms and right.terms):
                return None
            return _scaled(left, right.constant) if left.terms else _scaled(right, left.constant)
        case _:
            return None


def _scaled(expr: Affine, factor: int) -> Affine:
    return Affine(expr.constant * factor, {v: k * factor for v, k in expr.terms.items()} if factor else {})


def _error(check: Check, spans: Mapping[int, Span], where: Mapping[int, int]) -> PtoError:
    def at(node: s.Scalar) -> int:
        def leaf(inner: s.Scalar) -> s.Number:
            return where.get(inner.id, spans[inner.id].first) if isinstance(inner, s.Var) else 0
        return int(s.evaluate(declared(node), leaf))

    found, lower, upper = at(check.value), at(check.lower), at(check.upper)
    point = ", ".join(f"{spans[v].name} = {k}" for v, k in where.items())
    return ViewBoundsError(f"{check.kind.value}: `{check.subject}`", argument_span(check.span, check.param),
                           expected=f"{lower} .. {upper}" if upper >= lower else "nothing: it is empty", found=str(found),
                           help="bound the loop by the tensor, or use .clip(...) for a last block that may be short"
                           if check.kind is not CheckKind.ELEMENT else "give the tensor an entry for every iteration",
                           notes=(f"for example where {point}",) if point else ())
