"""Describe the iterations that reach a place of the plan as a system for the affine solver.

A level is a construct around the place: a loop, a condition that is true or false there, a consumer of tokens. Sizes are the declared ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from pto_wsp.check.affine.linear import LinExpr, System, Variable, VarKind, fresh_variable
from pto_wsp.check.affine.scalars import Translator
from pto_wsp.check.affine.solve import Sat, Unsat, reach
from pto_wsp.ir import scalar as s
from pto_wsp.ir.flow import Consume, Loop
from pto_wsp.ir.plan import PlanConsume, PlanLoop
from pto_wsp.ir.view import as_declared
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class LevelCondition:
    """A condition that is true (`holds`) or false inside a level."""

    condition: s.Scalar
    holds: bool


Level: TypeAlias = PlanLoop | PlanConsume | LevelCondition


@dataclass(frozen=True, slots=True)
class Impossible:
    """Proved: no such iteration exists."""


@dataclass(frozen=True, slots=True)
class Example:
    """Such an iteration, as values of loop variables by id, valid for all bindings."""

    point: dict[int, int]


@dataclass(frozen=True, slots=True)
class Undecided:
    """Neither: it depends on the bindings, or the solver gave up."""


Answer: TypeAlias = Impossible | Example | Undecided


class Iterations:
    """The iterations that reach a place inside some levels, outermost first. `written`: the ids of tensors whose elements change."""

    def __init__(self, levels: Iterable[Level], written: frozenset[int]) -> None:
        self._bound: dict[s.Scalar, LinExpr] = {}
        self._ids: dict[Variable, int] = {}
        self._scope = Translator(lambda tensor: tensor.id not in written).scope(self._bound)
        self._system = System()
        self._is_exact = True
        for level in levels:
            match level:
                case Loop():
                    self._enter(level)
                case Consume():
                    self._is_exact = False   # there may be no token
                case LevelCondition(condition, holds):
                    self._system.include(self._scope.condition(as_declared(condition), holds))

    def where_above(self, lhs: s.Scalar, rhs: s.Scalar) -> Answer:
        """Return whether lhs > rhs in some iteration."""
        over = self._scope.not_above(as_declared(rhs), as_declared(lhs), 1)
        match reach(self._system.branch().include(over)):
            case Unsat():
                return Impossible()
            case Sat(point) if self._is_exact:
                # A point that chooses a run's sizes or a table's contents is no example for every run.
                if all(isinstance(key, Variable) and (key in self._ids or key.kind in (VarKind.DEFINED, VarKind.OPAQUE)) for key in point):
                    return Example({number: point.get(variable, 0) for variable, number in self._ids.items()})
        return Undecided()

    def _enter(self, loop: PlanLoop) -> None:
        var, start, stop = self._variable(loop.var), as_declared(loop.start), as_declared(loop.stop)
        scope, step = self._scope, as_declared(loop.step)
        self._system.include(scope.not_above(start, loop.var)).include(scope.not_above(loop.var, stop, 1))
        match step:
            case s.Const(1):
                pass
            case s.Const(int() as by) if by > 1:
                self._system.equal(var, scope.linear(start) + fresh_variable("iteration", VarKind.DEFINED) * by)
            case _:
                self._is_exact = False
        if loop.through is not None:
            self._system.equal(self._variable(loop.through.var), scope.linear(as_declared(loop.through.value)))

    def _variable(self, var: s.Var) -> LinExpr:
        variable = Variable(var.name)
        self._ids[variable] = var.id
        self._bound[var] = LinExpr.of(variable)
        return self._bound[var]
