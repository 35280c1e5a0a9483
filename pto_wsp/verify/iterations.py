"""Iterations: what loop variables and sizes can be where control comes to a place of the plan, as a system for the affine solver.

A level is what stands around the place: a loop, a condition that holds there or does not, the tokens of a channel. Sizes are those
declared.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from pto_wsp.plan.model import Consume, Loop
from pto_wsp.types import scalar as s
from pto_wsp.types.view import as_declared
from pto_wsp.values import dataclass
from pto_wsp.verify.affine.linear import Kind, LinExpr, System, Variable, fresh
from pto_wsp.verify.affine.scalars import Translator
from pto_wsp.verify.affine.solve import Sat, Unsat, reach


@dataclass(frozen=True, slots=True)
class Given:
    """A condition that holds inside of a level, or does not."""

    condition: s.Scalar
    holds: bool


Level: TypeAlias = Loop | Consume | Given


@dataclass(frozen=True, slots=True)
class Impossible:
    """Proved: no iteration is like that."""


@dataclass(frozen=True, slots=True)
class Example:
    """An iteration that is like that, by the ids of loop variables, whatever is bound."""

    point: dict[int, int]


@dataclass(frozen=True, slots=True)
class Open:
    """Neither: it depends on what is bound, or was not found out."""


Answer: TypeAlias = Impossible | Example | Open


class Iterations:
    """The iterations that come to a place inside of some levels, outermost first. `written`: the ids of tensors whose elements change."""

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
                    self._is_exact = False   # perhaps no token comes
                case Given(condition, holds):
                    self._system.include(self._scope.condition(as_declared(condition), holds))

    def where_above(self, lhs: s.Scalar, rhs: s.Scalar) -> Answer:
        """Return whether lhs > rhs in some iteration."""
        over = self._scope.not_above(as_declared(rhs), as_declared(lhs), 1)
        match reach(self._system.branch().include(over)):
            case Unsat():
                return Impossible()
            case Sat(point) if self._is_exact:
                # Sizes that a run binds, and what tables hold, would be chosen by the point: then it is no example of every run.
                if all(isinstance(key, Variable) and (key in self._ids or key.kind in (Kind.DEFINED, Kind.OPAQUE)) for key in point):
                    return Example({number: point.get(variable, 0) for variable, number in self._ids.items()})
        return Open()

    def _enter(self, loop: Loop) -> None:
        var, start, stop = self._variable(loop.var), as_declared(loop.start), as_declared(loop.stop)
        scope, step = self._scope, as_declared(loop.step)
        self._system.include(scope.not_above(start, loop.var)).include(scope.not_above(loop.var, stop, 1))
        match step:
            case s.Const(1):
                pass
            case s.Const(int() as by) if by > 1:
                self._system.equal(var, scope.linear(start) + fresh("turn", Kind.DEFINED) * by)
            case _:
                self._is_exact = False
        if loop.through is not None:
            self._system.equal(self._variable(loop.through.var), scope.linear(as_declared(loop.through.value)))

    def _variable(self, var: s.Var) -> LinExpr:
        variable = Variable(var.name)
        self._ids[variable] = var.id
        self._bound[var] = LinExpr.of(variable)
        return self._bound[var]

