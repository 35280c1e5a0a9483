"""Accesses: what tasks touch, and what must hold for the task to be there; and the elements that the workload itself reads.

A level is a construct around a task that decides how often it is there: a loop, a branch, a consumer of tokens.
"""

from __future__ import annotations

from typing import TypeAlias

from pto_wsp.expr.kernel import Role
from pto_wsp.plan.model import Branch, Check, Choice, Consume, Loop, Process, Receive, Send, SetSlot, Submit
from pto_wsp.source import Span, argument_span
from pto_wsp.types.scalar import Scalar, Var
from pto_wsp.types.view import View
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """A branch of a choice: 0 .. n-1, or n for `otherwise`. Those before it did not hold. `asked`: its own condition is being read."""

    choice: Choice
    number: int
    asked: bool = False

    @property
    def refused(self) -> tuple[Branch, ...]:
        """The branches whose conditions do not hold."""
        return self.choice.branches[:self.number]

    @property
    def held(self) -> Scalar | None:
        """The condition that holds, None in `otherwise`."""
        return None if self.asked or self.number == len(self.choice.branches) else self.choice.branches[self.number].condition


def token_number(consumer: Consume) -> Var:
    """Return the variable that counts the tokens of a consumer's channel: which one is taken in this turn, all replicas together."""
    return Var("token", _TOKEN_NUMBERS - consumer.site)


_TOKEN_NUMBERS = -(1 << 32)      # as ids, far from those of loops

Level: TypeAlias = Loop | Taken | Consume | Receive | Process
Statement: TypeAlias = Submit | Loop | Branch | SetSlot | Send


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One memory parameter of one task site: the tensor's slot, what is done to it, where, and the levels around, outermost first.

    `param` is empty where the workload reads an element itself; `who` is that in words, e.g. copy(x). `checks`: made before.
    """

    statement: Statement
    who: str
    param: str
    slot: int
    role: Role
    view: View
    levels: tuple[Level, ...]
    checks: tuple[Check, ...]

    @property
    def span(self) -> Span:
        """Where the user wrote it."""
        return argument_span(self.statement.span, self.param) if self.param else self.statement.span

    @property
    def by_workload(self) -> bool:
        """True for an element that the workload reads itself."""
        return not self.param

    @property
    def verb(self) -> str:
        """What is done, for a sentence."""
        return "written" if self.role.writes else "read"

    @property
    def variables(self) -> tuple[Var, ...]:
        """The variables that a user knows around the task, outermost first."""
        return tuple(level.known_var for level in self.levels if isinstance(level, Loop))
