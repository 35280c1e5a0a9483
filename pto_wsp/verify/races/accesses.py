"""Accesses: what tasks touch, and what must hold for the task to be there.

A level is a construct around a task that decides how often it is there: a loop, a branch, a consumer of tokens.
"""

from __future__ import annotations

from typing import TypeAlias

from pto_wsp.expr.kernel import Role
from pto_wsp.plan.model import Branch, Choice, Consume, Loop, Process, Receive, Submit
from pto_wsp.source import Span, argument_span
from pto_wsp.types.scalar import Scalar, Var
from pto_wsp.types.view import View
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """A branch of a choice: 0 .. n-1, or n for `otherwise`. Those before it did not hold."""

    choice: Choice
    number: int

    @property
    def refused(self) -> tuple[Branch, ...]:
        """The branches whose conditions do not hold."""
        return self.choice.branches[:self.number]

    @property
    def held(self) -> Scalar | None:
        """The condition that holds, None in `otherwise`."""
        return self.choice.branches[self.number].condition if self.number < len(self.choice.branches) else None


Level: TypeAlias = Loop | Taken | Consume | Receive | Process


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One memory parameter of one task site: the tensor's slot, what is done to it, where, and the levels around, outermost first."""

    task: Submit
    kernel: str
    param: str
    slot: int
    role: Role
    view: View
    levels: tuple[Level, ...]

    @property
    def span(self) -> Span:
        """Where the user wrote it."""
        return argument_span(self.task.span, self.param)

    @property
    def verb(self) -> str:
        """What is done, for a sentence."""
        return "written" if self.role.writes else "read"

    @property
    def variables(self) -> tuple[Var, ...]:
        """The variables that a user knows around the task, outermost first."""
        return tuple(level.var if level.through is None else level.through.var for level in self.levels if isinstance(level, Loop))
