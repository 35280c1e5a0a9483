"""Branches of a workload: P.when, P.elif_, P.otherwise. Each body is traced once, whatever its condition will be.

>>> for b in P(batch):
...     with P.when(lens[b] > 4096):
...         long[b](x=X[b], out=Y[b])
...     with P.otherwise():
...         short[b](x=X[b], out=Y[b])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from types import MappingProxyType, TracebackType
from typing import NoReturn

from pto_wsp.errors import ArgumentKindError, CarriedValueError, SymbolicControlError, WorkloadStructureError
from pto_wsp.expr import workload as wl
from pto_wsp.frontend.bytecode.carried import NUMBERS, Carried, carried_by, held_by_names
from pto_wsp.frontend.bytecode.early_exit import left_early
from pto_wsp.frontend.workload.trace import Scope, WorkloadTrace, current_trace
from pto_wsp.source import Span, here, user_frame
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.symbolic import as_scalar
from pto_wsp.values import dataclass

_FIRST = "P.when"


def branch(keyword: str, *condition: object) -> Side:
    """Return what `with` opens: a branch with its condition, or (without one) where no condition held."""
    trace = current_trace(f"a branch `{keyword}(...)`")
    span = here()
    node = _condition(keyword, trace.use(as_scalar(condition[0]), user_frame(), span), span) if condition else None
    return Side(trace, keyword, node, span)


@dataclass(slots=True)
class _Opened:
    """A body that is open: where it was entered, and the choice that it goes on."""

    body: AbstractContextManager[Scope]
    scope: Scope
    entered_at: int
    held: Mapping[str, object]
    before: wl.Choice | None


class Side:
    """One branch, which `with` opens."""

    __slots__ = ("_condition", "_keyword", "_opened", "_span", "_trace")

    def __init__(self, trace: WorkloadTrace, keyword: str, condition: s.Scalar | None, span: Span) -> None:
        self._trace, self._keyword, self._condition, self._span = trace, keyword, condition, span
        self._opened: list[_Opened] = []
        trace.unopened.append((self, span))

    def __enter__(self) -> None:
        frame = user_frame()
        self.open(frame.f_lasti, held_by_names(frame, NUMBERS))

    def open(self, entered_at: int = -1, held: Mapping[str, object] = MappingProxyType({})) -> None:
        """Begin the body. `entered_at`: where the user's `with` stands; `held`: the numbers that variables hold there."""
        trace = current_trace(f"a branch `{self!r}`")
        if trace is not self._trace:
            raise WorkloadStructureError(f"`{self!r}` was made in another workload", here(), help=f"write it here: with {self!r}: ...")
        trace.unopened = [(each, span) for each, span in trace.unopened if each is not self]
        around = trace.scopes[-1]
        before, choice = (None, object()) if self._keyword == _FIRST else self._continued(around)
        body = trace.scope(choice=choice)
        self._opened.append(_Opened(body, body.__enter__(), entered_at, held, before))

    def _continued(self, around: Scope) -> tuple[wl.Choice, object]:
        """Return the choice that this branch goes on.

        Raises: W102 when none ends directly before it.
        """
        if around.decided is not None and around.items and around.items[-1] is around.decided[0]:
            return around.decided
        raise WorkloadStructureError(f"`{self!r}` does not stand directly after a `with P.when(...)`", here(),
                                     help="it goes on the conditions before it in the same body: nothing may come between them, and "
                                          "nothing goes on a P.otherwise()")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self.abandon()
            return
        frame, opened = user_frame(), self._opened[-1]
        if left_early(frame, opened.entered_at):
            self.abandon()
            raise SymbolicControlError(f"the body of `{self!r}` is left early", here(),
                                       help="every body is traced once and stands for all iterations, so break, continue and return have "
                                            "no meaning in it; put what is not to run into `with P.otherwise():`")
        self.close()
        refuse_carried(carried_by(frame, opened.entered_at, frame.f_lasti, opened.held), "branch", "whether it runs or not")

    def abandon(self) -> None:
        """End the body without a trace of it: an error is on its way."""
        self._opened.pop().body.__exit__(None, None, None)

    def close(self) -> None:
        """End the body, and add it to its choice."""
        opened = self._opened.pop()
        opened.body.__exit__(None, None, None)
        body = wl.Block(tuple(opened.scope.items))
        around = self._trace.scopes[-1]
        before = opened.before or wl.Choice((), wl.Block())
        if self._condition is None:
            made, goes_on = replace(before, otherwise=body), False
        else:
            made, goes_on = replace(before, branches=(*before.branches, wl.Branch(self._condition, body, self._span))), True
        if opened.before is not None:
            around.items.pop()
        self._trace.append(made)
        around.decided = (made, opened.scope.choice) if goes_on else None

    def __bool__(self) -> NoReturn:
        raise SymbolicControlError(f"`{self!r}` opens a body, it is no truth value", here(), expected=f"with {self!r}: ...")

    def __repr__(self) -> str:
        return f"{self._keyword}({'' if self._condition is None else print_scalar(self._condition)})"


def refuse_carried(carried: Carried | None, kind: str, when: str) -> None:
    """Raise K109 for a variable that a body of a workload reads and then assigns to."""
    if carried is not None:
        raise CarriedValueError(f"`{carried.name}` is read in a {kind} of the workload and then assigned to", carried.span,
                                found=f"a body that is traced once: `{carried.name}` is read as it was before the {kind}, {when}",
                                help="compute it from the loop's variable, or keep it in a slot; a variable of the "
                                     f"{kind}'s own takes another name")


def run_branch(keyword: str, body: Callable[[], object], *condition: object) -> None:
    """Trace a function as the body of a branch."""
    side = branch(keyword, *condition)
    side.open()
    try:
        body()
    except BaseException:
        side.abandon()
        raise
    side.close()


def _condition(keyword: str, node: s.Scalar, span: Span) -> s.Scalar:
    """Return a condition as a truth value: whole numbers hold unless they are 0."""
    kind = s.scalar_dtype(node)
    if kind.is_bool:
        return node
    if kind.is_integer:
        return s.binary(s.Op.NE, node, s.Const(0))
    raise ArgumentKindError(f"`{keyword}` takes a condition", span, expected="a comparison, a truth value or a whole number",
                            found=f"a float: {print_scalar(node)}", help=f"compare it: {print_scalar(node)} != 0")
