"""`P`: the loops of a workload. `for b, h in P(batch, heads)` traces its body once, for all iterations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from inspect import Parameter, signature
from types import FrameType
from typing import Any, NoReturn

from pto_wsp.errors import WorkloadStructureError
from pto_wsp.frontend.bytecode.loop_names import loop_names
from pto_wsp.frontend.workload.trace import Scope, WorkloadTrace, current_trace
from pto_wsp.source import Span, here, span_of, user_frame
from pto_wsp.types import scalar as s
from pto_wsp.types.axis import Walk, walk_of
from pto_wsp.types.symbolic import Symbolic


class Loops:
    """`P(axis, …)`: unordered loops over axes; `P.seq(axis, …)`: in order. The checks hold the user to what P promises."""

    def __call__(self, *axes: object, names: Sequence[str] | None = None) -> Iterator[Any]:
        """Loop over one axis or several nested ones, iterations unordered.

        Axes: Dense[N](), DenseDyn(n), a row of a Ragged, a range, a whole number, a scalar expression. The variables carry the
        names that the `for` statement gives them; `names` overrides.
        Raises: W102 for what is no axis; K105 outside a workload.
        """
        return _loop(axes, names, ordered=False)

    def seq(self, *axes: object, names: Sequence[str] | None = None) -> Iterator[Any]:
        """Loop as `P(…)` does, each iteration after the one before."""
        return _loop(axes, names, ordered=True)

    def sel(self, *_: object) -> NoReturn:
        """Walk the chosen columns of a sparse row (not supported yet: refused)."""
        _not_yet("P.sel")

    def when(self, *_: object) -> NoReturn:
        """Condition on a scalar (not supported yet: refused)."""
        _not_yet("P.when")

    def elif_(self, *_: object) -> NoReturn:
        """Another condition (not supported yet: refused)."""
        _not_yet("P.elif_")

    def otherwise(self) -> NoReturn:
        """Where no condition held (not supported yet: refused)."""
        _not_yet("P.otherwise")

    def pipe(self) -> NoReturn:
        """Pipeline of processes (not supported yet: refused)."""
        _not_yet("P.pipe")

    def __repr__(self) -> str:
        return "P"


P = Loops()


def _loop(axes: tuple[object, ...], names: Sequence[str] | None, *, ordered: bool) -> Iterator[Any]:
    trace = current_trace("a loop `P(...)`")
    frame, span = user_frame(), here()
    if not axes:
        raise WorkloadStructureError("P loops over at least one axis", span)
    walks = tuple(walk_of(a) for a in axes)
    if names is not None and len(names) != len(walks):
        raise WorkloadStructureError("names= takes one name an axis", span, expected=f"{len(walks)} names", found=repr(names))
    return _iterate(trace, walks, names, frame, span, ordered=ordered)


def _iterate(trace: WorkloadTrace, walks: tuple[Walk, ...], names: Sequence[str] | None, frame: FrameType, span: Span, *,
             ordered: bool) -> Iterator[Any]:
    found = names or loop_names(frame, len(walks)) or loop_names(frame, 1)
    if found is None:
        found = tuple(f"i{k}" for k in range(len(walks)))
    elif len(found) != len(walks):   # for ij in P(a, b)
        found = tuple(f"{found[0]}{k}" for k in range(len(walks)))
    variables = tuple(trace.new_var(name) for name in found)
    scopes: list[Scope] = []
    with ExitStack() as stack:
        for variable in variables:
            scopes.append(stack.enter_context(trace.scope(variable)))
        values = tuple(Symbolic(variable) for variable in variables)
        try:
            yield values if len(values) > 1 else values[0]
        except GeneratorExit:
            trace.abandoned = trace.abandoned or span_of(frame)
            raise
    _close(trace, walks, variables, scopes, frame, span, ordered=ordered)


def _close(trace: WorkloadTrace, walks: tuple[Walk, ...], variables: tuple[s.Var, ...], scopes: list[Scope], frame: FrameType,
           span: Span, *, ordered: bool) -> None:
    """Add the loops, the innermost first, each as the only item of the one around it."""
    for level in reversed(range(len(walks))):
        around = variables[:level]   # an inner axis may depend on an outer variable
        trace.open_vars.update(variable.id for variable in around)
        trace.scopes.extend(scopes[:level])
        trace.close_loop(walks[level], variables[level], scopes[level], ordered=ordered, frame=frame, span=span)
        del trace.scopes[len(trace.scopes) - level:]
        trace.open_vars.difference_update(variable.id for variable in around)


def parallel_for(axis: object, body: Callable[..., object], *, names: Sequence[str] | None = None) -> None:
    """Loop over an axis, iterations unordered: `parallel_for(batch, lambda b: k[b](…))`. The variable is called as the parameter."""
    _functional(axis, body, names, ordered=False)


def for_each(axis: object, body: Callable[..., object], *, names: Sequence[str] | None = None) -> None:
    """Loop over an axis in order, as `parallel_for` does without."""
    _functional(axis, body, names, ordered=True)


def _functional(axis: object, body: Callable[..., object], names: Sequence[str] | None, *, ordered: bool) -> None:
    positional = [p for p in signature(body).parameters.values()
                  if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    if len(positional) != 1:
        raise WorkloadStructureError("the body of a functional loop takes the loop variable", here(), expected="one parameter",
                                     found=str(signature(body)))
    for variable in _loop((axis,), names or (positional[0].name,), ordered=ordered):
        body(variable)


def _not_yet(what: str) -> NoReturn:
    raise WorkloadStructureError(f"{what} is not supported yet", here(),
                                 help="this version has P(...), P.seq(...), sequential and combine")
