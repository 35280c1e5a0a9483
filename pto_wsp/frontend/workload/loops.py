"""`P`: the loops and branches of a workload. `for b, h in P(batch, heads)` traces its body once, for all iterations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import FrameType
from typing import Any

from pto_wsp.errors import WorkloadStructureError
from pto_wsp.frontend.bytecode.carried import NUMBERS, carried_by, held_by_names
from pto_wsp.frontend.bytecode.loop_names import loop_names, takes_apart_otherwise
from pto_wsp.frontend.workload.branches import Side, branch, refuse_carried
from pto_wsp.frontend.workload.csp.pipe import Pipe, pipe
from pto_wsp.frontend.workload.trace import Scope, WorkloadTrace, current_trace
from pto_wsp.source import Span, here, span_of, user_frame
from pto_wsp.types import scalar as s
from pto_wsp.types.axes.sparse import Column, Sparse, SparseRow
from pto_wsp.types.axes.walk import Walk, walk_of
from pto_wsp.types.symbolic import Symbolic
from pto_wsp.values import dataclass


class SparseWalks:
    """`P.sel(routing[b])`: the columns of a sparse row; `P.sel(routing)`: rows and columns, `for b, e in …`; `P.sel.seq`: in order."""

    def __call__(self, *axes: object, names: Sequence[str] | None = None) -> Iterator[Any]:
        """Walk the chosen columns, unordered. Each is a scalar with `.position`: where it stands in the indices.

        Raises: W102 for what is not Sparse; K105 outside a workload.
        """
        return _loop(axes, names, ordered=False, only_sparse="P.sel")

    def seq(self, *axes: object, names: Sequence[str] | None = None) -> Iterator[Any]:
        """Walk as `P.sel(…)` does, each column after the one before."""
        return _loop(axes, names, ordered=True, only_sparse="P.sel.seq")

    def __repr__(self) -> str:
        return "P.sel"


class Loops:
    """`P(axis, …)`: unordered loops over axes; `P.seq(axis, …)`: in order. The checks hold the user to what P promises."""

    sel = SparseWalks()

    def __call__(self, *axes: object, names: Sequence[str] | None = None) -> Iterator[Any]:
        """Loop over one axis or several nested ones, iterations unordered.

        Axes: Dense[N](), DenseDyn(n), a row of a Ragged or Sparse, a Sparse (two variables: row and column), a range, a whole number,
        a scalar expression. The variables carry the names that the `for` statement gives them; `names` overrides.
        Raises: W102 for what is no axis; K105 outside a workload.
        """
        return _loop(axes, names, ordered=False)

    def seq(self, *axes: object, names: Sequence[str] | None = None) -> Iterator[Any]:
        """Loop as `P(…)` does, each iteration after the one before."""
        return _loop(axes, names, ordered=True)

    def when(self, condition: object) -> Side:
        """Run a body where a condition holds: `with P.when(c): …`, then perhaps `with P.elif_(d): …` and `with P.otherwise(): …`.

        The condition is known when tasks are made: loop variables, symbols, elements of tensors, slots, and comparisons of them
        joined by &, | and ~; a whole number holds unless it is 0. All bodies are traced.
        Raises: T205 for what is no condition; K105 outside a workload.
        """
        return branch("P.when", condition)

    def elif_(self, condition: object) -> Side:
        """Run a body where the conditions directly before it do not hold and this one does; it is evaluated only then."""
        return branch("P.elif_", condition)

    def otherwise(self) -> Side:
        """Run a body where none of the conditions directly before it holds."""
        return branch("P.otherwise")

    def pipe(self) -> Pipe:
        """Run every statement directly inside as a process of its own, named after what it is: `with P.pipe(): …`."""
        return pipe()

    def __repr__(self) -> str:
        return "P"


P = Loops()


def _loop(axes: tuple[object, ...], names: Sequence[str] | None, *, ordered: bool, only_sparse: str = "") -> Iterator[Any]:
    trace = current_trace("a loop `P(...)`")
    frame, span = user_frame(), here()
    if not axes:
        raise WorkloadStructureError("P loops over at least one axis", span)
    if only_sparse:
        for axis in axes:
            if not isinstance(axis, Sparse | SparseRow):
                raise WorkloadStructureError(f"{only_sparse} walks the columns of a Sparse", span, expected="routing[b], or routing",
                                             found=f"{type(axis).__name__}: {axis!r:.60}", help="P(...) loops over any other axis")
    levels = tuple(level for axis in axes for level in _levels(axis))
    if names is not None and len(names) != len(levels):
        raise WorkloadStructureError("names= takes one name an axis", span, expected=f"{len(levels)} names", found=repr(names))
    return _iterate(trace, levels, names, frame, span, ordered=ordered)


def _levels(axis: object) -> tuple[Walk | Sparse, ...]:
    """Return the loops that an axis stands for; a `Sparse` among them is the row of the variable before it."""
    return (walk_of(axis.outer), axis) if isinstance(axis, Sparse) else (walk_of(axis),)


@dataclass(slots=True)
class _Open:
    """A loop whose body is being traced: its variable, and of a walk through a sparse row also the position."""

    walk: Walk
    var: s.Var
    position: s.Var | None
    scope: Scope
    value: Symbolic

    @property
    def bound(self) -> tuple[s.Var, ...]:
        """The variables that the body may use."""
        return (self.var,) if self.position is None else (self.var, self.position)


def _iterate(trace: WorkloadTrace, levels: tuple[Walk | Sparse, ...], names: Sequence[str] | None, frame: FrameType, span: Span, *,
             ordered: bool) -> Iterator[Any]:
    walking = user_frame()     # of a comprehension, another one than that which asked for the loop
    found = names or loop_names(walking, len(levels)) or loop_names(walking, 1)
    if found is None:
        found = tuple(f"i{k}" for k in range(len(levels)))
    elif len(found) != len(levels):   # for ij in P(a, b)
        found = tuple(f"{found[0]}{k}" for k in range(len(levels)))
    otherwise = takes_apart_otherwise(walking, len(levels))
    if otherwise and len(levels) > 1:
        raise _takes_other_values(len(levels), span)
    opened: list[_Open] = []
    with ExitStack() as stack:
        for level, name in zip(levels, found, strict=True):
            walk = level if isinstance(level, Walk) else walk_of(level[opened[-1].value])
            var = trace.new_var(name)
            position = None if walk.leads_to is None else trace.new_var(f"{name}.position")
            value = Symbolic(var) if position is None else Column(var, position, walk.tensors)
            scope = stack.enter_context(trace.scope(var, *(() if position is None else (position,))))
            opened.append(_Open(walk, var, position, scope, value))
        at, before = walking.f_lasti, held_by_names(walking, NUMBERS)
        try:
            yield tuple(each.value for each in opened) if len(opened) > 1 else opened[0].value
        except GeneratorExit:
            trace.abandoned = trace.abandoned or span_of(frame)
            raise
        refuse_carried(carried_by(walking, at, None, before), "loop", "in every turn")
        if otherwise:      # one variable that is unpacked has said so by now; enumerate and zip would only count to one
            raise _takes_other_values(1, span)
    _close(trace, opened, frame, span, ordered=ordered)


def _takes_other_values(count: int, span: Span) -> WorkloadStructureError:
    variables = "one variable" if count == 1 else f"{count} variables"
    return WorkloadStructureError(f"the `for` takes other values than P gives, {variables}", span,
                                  expected=f"for {', '.join('bhtijk'[:count]) if count <= 6 else 'variables'} in P(...)",
                                  help="the body is traced once, for all iterations, so enumerate and zip would count no further than to "
                                       "their first value; a variable of P is its own number, and P(a, b) has two")


def _close(trace: WorkloadTrace, opened: list[_Open], frame: FrameType, span: Span, *, ordered: bool) -> None:
    """Add the loops, the innermost first, each as the only item of the one around it."""
    for level in reversed(range(len(opened))):
        around, each = opened[:level], opened[level]   # an inner axis may depend on an outer variable
        bound = {variable.id for outer in around for variable in outer.bound}
        trace.open_vars |= bound
        trace.scopes.extend(outer.scope for outer in around)
        trace.close_loop(each.walk, each.var, each.position, each.scope, ordered=ordered, frame=frame, span=span)
        del trace.scopes[len(trace.scopes) - level:]
        trace.open_vars -= bound
