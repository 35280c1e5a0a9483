"""Trace the loops, branches and slots of a workload: `P(...)`, `P.when`, `P.elif_`, `P.otherwise`, `slot_u64`.

`for b, h in P(batch, heads)` runs its body once, for all iterations; each body of a branch is traced once, whatever its condition will be.
Slots are 64-bit numbers that the orchestrator keeps between statements.

>>> for b in P(batch):
...     with P.when(lens[b] > 4096):
...         long[b](x=X[b], out=Y[b])
...     with P.otherwise():
...         short[b](x=X[b], out=Y[b])
>>> slot_load_u64(0, counts, b, 0)               # slot 0 holds counts[b, 0]
>>> with P.when(slot_u64(0) > 4): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from types import FrameType, MappingProxyType, TracebackType
from typing import Any, NoReturn, TypeAlias

import numpy as np

from pto_wsp.calls import user_call, user_calls
from pto_wsp.errors import ConditionError, NumberError, SymbolicControlError, WorkloadStructureError
from pto_wsp.ir import flow
from pto_wsp.ir import scalar as s
from pto_wsp.ir import workload as wl
from pto_wsp.ir.axes import Column, Sparse, SparseRow, Walk, walk_of
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic, as_scalar
from pto_wsp.ir.tensor import TensorView
from pto_wsp.source import Span, here, span_of, user_frame
from pto_wsp.trace.bytecode import (
    NUMBERS,
    LoopCarried,
    carried_variable,
    held_by_names,
    left_early,
    left_early_error,
    loop_names,
    takes_apart_otherwise,
)
from pto_wsp.trace.workload.pipelines import PipeScope, pipe
from pto_wsp.trace.workload.trace import TraceScope, WorkloadTrace, current_trace
from pto_wsp.values import dataclass

# -- branches ----------------------------------------------------------------------------------------------------------
_FIRST = "P.when"


def branch(keyword: str, *condition: object) -> WorkloadBranch:
    """Return the context manager of a branch: P.when and P.elif_ take a condition, P.otherwise takes none."""
    trace = current_trace(f"a branch `{keyword}(...)`", keyword.removeprefix("P."))
    span = here()
    node = _condition(keyword, trace.use(as_scalar(condition[0]), user_frame(), span), span) if condition else None
    return WorkloadBranch(trace, keyword, node, span)


@dataclass(slots=True)
class _Opened:
    """An open body: where it was entered, and the choice that it continues."""

    body: AbstractContextManager[TraceScope]
    scope: TraceScope
    entered_at: int
    held: Mapping[str, object]
    before: wl.WorkloadChoice | None


class WorkloadBranch:
    """One branch, which `with` opens."""

    __slots__ = ("_condition", "_keyword", "_opened", "_span", "_trace")

    def __init__(self, trace: WorkloadTrace, keyword: str, condition: s.Scalar | None, span: Span) -> None:
        self._trace, self._keyword, self._condition, self._span = trace, keyword, condition, span
        self._opened: list[_Opened] = []
        trace.awaited.add(self, span)

    def __enter__(self) -> None:
        frame = user_frame()
        self.open(frame.f_lasti, held_by_names(frame, NUMBERS))

    def open(self, entered_at: int = -1, held: Mapping[str, object] = MappingProxyType({})) -> None:
        """Begin the body. `entered_at`: the bytecode offset of the user's `with`; `held`: the numeric variables at that point."""
        trace = current_trace(f"a branch `{self!r}`")
        if trace is not self._trace:
            raise WorkloadStructureError(f"`{self!r}` was made in another workload", here(), help=f"write it here: with {self!r}: ...")
        trace.awaited.opened(self)
        enclosing = trace.scopes[-1]
        before, choice = (None, object()) if self._keyword == _FIRST else self._continued(enclosing)
        body = trace.scope(choice=choice)
        conditions = (*(() if before is None else (branch.condition for branch in before.branches)),
                      *(() if self._condition is None else (self._condition,)))
        self._opened.append(_Opened(body, body.__enter__(), entered_at, held, before))
        trace.ranks.read.append((conditions, self._span))

    def _continued(self, around: TraceScope) -> tuple[wl.WorkloadChoice, object]:
        """Return the choice that this branch continues.

        Raises: W102 if none ends directly before it.
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
            raise left_early_error(f"the body of `{self!r}` is left early", here(),
                                       help="every body is traced once and stands for all iterations, so break, continue and return have "
                                            "no meaning in it; put what is not to run into `with P.otherwise():`")
        self.close()
        refuse_carried(carried_variable(frame, opened.entered_at, frame.f_lasti, opened.held), "branch", "whether it runs or not")

    def abandon(self) -> None:
        """End the body without recording it, because an error is being raised."""
        self._trace.ranks.read.pop()
        self._opened.pop().body.__exit__(None, None, None)

    def close(self) -> None:
        """End the body, and append it to its choice."""
        opened = self._opened.pop()
        self._trace.ranks.read.pop()
        opened.body.__exit__(None, None, None)
        body = flow.Sequence(tuple(opened.scope.items))
        enclosing = self._trace.scopes[-1]
        before = opened.before or flow.Choice((), flow.Sequence())
        if self._condition is None:
            choice, goes_on = replace(before, otherwise=body), False
        else:
            side = flow.Branch(self._condition, body, wl.WorkloadNote(), self._span)
            choice, goes_on = replace(before, branches=(*before.branches, side)), True
        if opened.before is not None:
            enclosing.items.pop()
        self._trace.append(choice)
        enclosing.decided = (choice, opened.scope.choice) if goes_on else None

    def __bool__(self) -> NoReturn:
        raise SymbolicControlError(f"`{self!r}` opens a body, it is no truth value", here(), expected=f"with {self!r}: ...", found="bool()")

    def __repr__(self) -> str:
        return f"{self._keyword}({'' if self._condition is None else print_scalar(self._condition)})"


def refuse_carried(carried: LoopCarried | None, kind: str, when: str) -> None:
    """Check for a variable that a workload's body reads and then assigns.

    Raises: K109 if `carried` names one.
    """
    if carried is not None:
        raise carried.refusal(kind, when, "compute it from the loop's variable, or keep it in a slot; a variable of the "
                                          f"{kind}'s own takes another name", " of the workload")


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
    """Return a condition as a truth value; integers are true unless 0."""
    kind = s.scalar_dtype(node)
    if kind.is_bool:
        return node
    if kind.is_integer:
        return s.binary(s.Op.NE, node, s.Const(0))
    raise ConditionError(f"`{keyword}` takes a condition", span, expected="a comparison, a truth value or a whole number",
                         found=f"a float: {print_scalar(node)}", help=f"compare it: {print_scalar(node)} != 0")


# -- loops -------------------------------------------------------------------------------------------------------------
Names: TypeAlias = "Sequence[str] | str | None"


@user_calls("P.sel")
class SparseWalks:
    """`P.sel(routing[b])`: the columns of a sparse row; `P.sel(routing)`: rows and columns, `for b, e in …`; `P.sel.seq`: in order."""

    @user_call("P.sel", name="names")
    def __call__(self, *axes: object, names: Names = None) -> Iterator[Any]:
        """Loop over the chosen columns, unordered. Each variable is a scalar with `.position`, its position in the indices.

        Raises: W102 for an axis that is not Sparse; K105 outside a workload.
        """
        return _loop(axes, names, ordered=False, only_sparse="P.sel")

    @user_call("P.sel.seq", name="names")
    def seq(self, *axes: object, names: Names = None) -> Iterator[Any]:
        """Loop as `P.sel(…)`, each column after the one before."""
        return _loop(axes, names, ordered=True, only_sparse="P.sel.seq")

    def __repr__(self) -> str:
        return "P.sel"


@user_calls("P")
class Loops:
    """`P(axis, …)`: unordered loops over axes; `P.seq(axis, …)`: ordered loops.

    The race check verifies that unordered iterations are independent.
    """

    sel = SparseWalks()

    @user_call("P", name="names")
    def __call__(self, *axes: object, names: Names = None) -> Iterator[Any]:
        """Loop over one axis or several nested axes; iterations are unordered.

        Axes: Dense[N](), DenseDyn(n), a row of a Ragged or Sparse, a Sparse (two variables: row and column), a range, a whole number,
        a scalar expression. The variables carry the names that the `for` statement gives them; `names`, a name or several, overrides.
        Raises: W106 for what is no axis, W102 for none; K105 outside a workload.
        """
        return _loop(axes, names, ordered=False)

    @user_call("P.seq", name="names")
    def seq(self, *axes: object, names: Names = None) -> Iterator[Any]:
        """Loop as `P(…)`, each iteration after the one before."""
        return _loop(axes, names, ordered=True)

    @user_call("P.grid", name="names")
    def grid(self, *axes: object, names: Names = None) -> Iterator[Any]:
        """Loop as `P(…)` over the axes, or over a list of them: `for i, j in P.grid((4, 8))`."""
        return _loop(tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], list | tuple) else axes, names, ordered=False)

    def when(self, condition: object) -> WorkloadBranch:
        """Run a body if a condition holds: `with P.when(c): …`, optionally `with P.elif_(d): …` and `with P.otherwise(): …`.

        The condition is known when tasks are made: loop variables, symbols, elements of tensors, slots, and comparisons of them
        joined by &, | and ~; a whole number holds unless it is 0. All bodies are traced.
        Raises: T205, T206, T210 for what is no condition; K105 outside a workload.
        """
        return branch("P.when", condition)

    def elif_(self, condition: object) -> WorkloadBranch:
        """Run a body if the conditions directly before are false and this one is true; evaluated only if they are false."""
        return branch("P.elif_", condition)

    def otherwise(self) -> WorkloadBranch:
        """Run a body if all conditions directly before are false."""
        return branch("P.otherwise")

    def pipe(self) -> PipeScope:
        """Run every statement directly inside as a process: `with P.pipe(): …`."""
        return pipe()

    def __repr__(self) -> str:
        return "P"


P = Loops()


def _loop(axes: tuple[object, ...], names: Names, *, ordered: bool, only_sparse: str = "") -> Iterator[Any]:
    trace = current_trace("a loop `P(...)`", "range" if ordered else "each")
    frame, span = user_frame(), here()
    if not axes:
        raise WorkloadStructureError("P loops over at least one axis", span)
    if only_sparse:
        for axis in axes:
            if not isinstance(axis, Sparse | SparseRow):
                raise WorkloadStructureError(f"{only_sparse} walks the columns of a Sparse", span, expected="routing[b], or routing",
                                             found=f"{type(axis).__name__}: {axis!r:.60}", help="P(...) loops over any other axis")
    levels = tuple(level for axis in axes for level in _levels(axis))
    if isinstance(names, str) and len(levels) == 1:
        names = (names,)
    if names is not None and (len(names) != len(levels) or not all(isinstance(name, str) and name.isidentifier() for name in names)):
        raise WorkloadStructureError("names= takes one name an axis", span, expected=f"{len(levels)} names", found=f"{names!r:.60}")
    return _iterate(trace, levels, names, frame, span, ordered=ordered)


def _levels(axis: object) -> tuple[Walk | Sparse, ...]:
    """Return the loops of an axis; a `Sparse` in the result is the row of the variable before it."""
    return (walk_of(axis.outer), axis) if isinstance(axis, Sparse) else (walk_of(axis),)


@dataclass(slots=True)
class _OpenLoop:
    """A loop whose body is being traced: its variable, and for a loop over a sparse row the position."""

    walk: Walk
    var: s.Var
    position: s.Var | None
    scope: TraceScope
    value: Symbolic

    @property
    def bound(self) -> tuple[s.Var, ...]:
        """The variables bound in the body."""
        return (self.var,) if self.position is None else (self.var, self.position)


def _iterate(trace: WorkloadTrace, levels: tuple[Walk | Sparse, ...], names: Sequence[str] | None, frame: FrameType, span: Span, *,
             ordered: bool) -> Iterator[Any]:
    walking = user_frame()     # in a comprehension this frame differs from the one that called P
    loop_vars = names or loop_names(walking, len(levels)) or loop_names(walking, 1)
    if loop_vars is None:
        loop_vars = tuple(f"i{k}" for k in range(len(levels)))
    elif len(loop_vars) != len(levels):   # for ij in P(a, b)
        loop_vars = tuple(f"{loop_vars[0]}{k}" for k in range(len(levels)))
    otherwise = takes_apart_otherwise(walking, len(levels))
    if otherwise and len(levels) > 1:
        raise _takes_other_values(len(levels), span)
    opened: list[_OpenLoop] = []
    with ExitStack() as stack:
        for level, name in zip(levels, loop_vars, strict=True):
            walk = level if isinstance(level, Walk) else walk_of(level[opened[-1].value])
            var = trace.new_var(name)
            position = None if walk.leads_to is None else trace.new_var(f"{name}.position")
            value = Symbolic(var) if position is None else Column(var, position, walk.tensors)
            scope = stack.enter_context(trace.scope(var, *(() if position is None else (position,))))
            scope.walk, scope.ordered = walk, ordered
            stack.enter_context(_over_ranks(trace, walk, var, span))
            opened.append(_OpenLoop(walk, var, position, scope, value))
        at, before = walking.f_lasti, held_by_names(walking, NUMBERS)
        try:
            yield tuple(each.value for each in opened) if len(opened) > 1 else opened[0].value
        except GeneratorExit:
            trace.abandoned = trace.abandoned or span_of(frame)
            raise
        refuse_carried(carried_variable(walking, at, None, before), "loop", "in every iteration")
        if otherwise:      # a single unpacked variable has raised before; enumerate and zip reach this point
            raise _takes_other_values(1, span)
    _close(trace, opened, frame, span, ordered=ordered)


@contextmanager
def _over_ranks(trace: WorkloadTrace, walk: Walk, var: s.Var, span: Span) -> Iterator[None]:
    """Keep in mind, for the body of a loop, what it evaluates, and of a loop over a mesh the rank."""
    ranks = trace.ranks
    if isinstance(walk.source, Mesh):
        ranks.use(walk.source)
        ranks.loops.append(var)
    led = () if walk.leads_to is None else (s.Element(walk.leads_to.ref, (var,)),)
    ranks.read.append(((walk.start, walk.stop, walk.step, *led), span))
    try:
        yield
    finally:
        ranks.read.pop()
        if isinstance(walk.source, Mesh):
            ranks.loops.pop()


def _takes_other_values(count: int, span: Span) -> WorkloadStructureError:
    variables = "one variable" if count == 1 else f"{count} variables"
    return WorkloadStructureError(f"the `for` takes other values than P gives, {variables}", span,
                                  expected=f"for {', '.join('bhtijk'[:count]) if count <= 6 else 'variables'} in P(...)",
                                  help="the body is traced once, for all iterations, so enumerate and zip would count no further than to "
                                       "their first value; a variable of P is its own number, and P(a, b) has two")


def _close(trace: WorkloadTrace, opened: list[_OpenLoop], frame: FrameType, span: Span, *, ordered: bool) -> None:
    """Append the loops, innermost first, each as the only item of the loop around it."""
    for level in reversed(range(len(opened))):
        outer_levels, each = opened[:level], opened[level]   # an inner axis may use an outer variable
        bound = {variable.id for outer in outer_levels for variable in outer.bound}
        trace.open_vars |= bound
        trace.scopes.extend(outer.scope for outer in outer_levels)
        trace.close_loop(each.walk, each.var, each.position, each.scope, ordered=ordered, frame=frame, span=span)
        del trace.scopes[len(trace.scopes) - level:]
        trace.open_vars -= bound


# -- slots -------------------------------------------------------------------------------------------------------------
N_SLOTS = 64


@user_call("slot_set_u64")
def slot_set_u64(slot: int, value: object) -> None:
    """Set a slot, in program order, to a scalar expression, a tensor's element or a Python number.

    Raises: W102 for a slot that is none of 0 .. 63, T205, T206, T209 for what is no whole number; K105 outside a workload.
    """
    trace = current_trace("slot_set_u64(...)")
    frame, span = user_frame(), here()
    number = _number(slot, "slot_set_u64")
    node = trace.use(as_scalar(value), frame, span)
    if s.scalar_dtype(node).is_float:
        raise NumberError("a slot holds a whole number", span, found=f"a float: {print_scalar(node)}")
    trace.append(flow.SetSlot(number, node, wl.WorkloadNote(), span))


@user_call("slot_load_u64")
def slot_load_u64(slot: int, view: TensorView, row: object = 0, col: object = 0) -> None:
    """Set a slot to the element at `row` and `col` of an integer view with two dimensions, or one (a single row).

    Raises: as `slot_set_u64`; W102 for a view of another rank.
    """
    if not isinstance(view, TensorView) or view.rank not in (1, 2):
        description = f"{view.rank} dimensions" if isinstance(view, TensorView) else f"{type(view).__name__}: {view!r:.60}"
        raise WorkloadStructureError("slot_load_u64 reads a view of one or two dimensions", here(), found=description,
                                     help="slot_set_u64(slot, X.item(i, j, k)) takes any one element")
    if view.rank == 1 and as_scalar(row) != s.Const(0):
        raise WorkloadStructureError("slot_load_u64: a view of one dimension is a single row", here(), expected="row 0",
                                     found=f"row {row!r}")
    slot_set_u64(slot, view.item(col) if view.rank == 1 else view.item(row, col))


@user_call("slot_u64")
def slot_u64(slot: int) -> Symbolic:
    """Return a slot's value as a scalar, read where the scalar is used; 0 if the slot was never set.

    Raises: W102 for a slot outside 0 .. 63.
    """
    return Symbolic(s.SlotValue(_number(slot, "slot_u64")))


def _number(slot: object, where: str) -> int:
    if isinstance(slot, bool) or not isinstance(slot, int | np.integer) or not 0 <= int(slot) < N_SLOTS:
        raise WorkloadStructureError(f"{where}: there is no such slot", here(), expected=f"a number, 0 .. {N_SLOTS - 1}", found=repr(slot))
    return int(slot)
