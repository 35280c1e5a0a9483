"""Trace a workload: run its function once with symbolic loop variables, and collect its statements as workload IR.

Bodies (of loops, branches, processes) are scopes on a stack; statements are appended to the innermost. A traced body stands for all of its
iterations. Names of tensors, axes and symbols come from the Python variables of the user's frames.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from types import FrameType
from typing import TypeVar

from pto_wsp.calls import user_call
from pto_wsp.errors import (
    AxisError,
    LoopVariableError,
    OutsideTraceError,
    RankError,
    SymbolicControlError,
    ValueScopeError,
    WorkloadDepthError,
    no_error_lost,
)
from pto_wsp.ir import flow, rewrite
from pto_wsp.ir import scalar as s
from pto_wsp.ir import workload as wl
from pto_wsp.ir.axes import DenseDyn, Walk
from pto_wsp.ir.indexing import at_most
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.mesh import MeshInUse, mesh_of_trace
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.tensor import Tensor, live_tensor, watch_tensors
from pto_wsp.ops.entry import is_active
from pto_wsp.source import Span, here, is_internal, user_frame
from pto_wsp.trace.branch import AwaitedWiths
from pto_wsp.trace.bytecode import assigned_name, left_early, left_early_error
from pto_wsp.values import dataclass
from pto_wsp.wording import form_elsewhere

Node = TypeVar("Node")

MOST_NESTED = 64     # nested bodies: every traversal of a workload recurses


@dataclass(slots=True)
class TraceScope:
    """A body being written: its items so far. `var`: the loop's variable; None for the outermost body and for branches.

    `choice`: an identity shared by the branches of one choice; None for other bodies. `decided`: the choice that ended last in this body
    and its identity, while another branch may follow.
    """

    items: list[wl.Item] = field(default_factory=list)
    var: s.Var | None = None
    closed: bool = False
    choice: object = None
    decided: tuple[wl.WorkloadChoice, object] | None = None
    walk: Walk | None = None       # of a loop: how it goes over its axis
    ordered: bool = False
    token: s.Var | None = None     # of the body of consume(ring): the number of the buffer, from 0
    received: list[s.Var] = field(default_factory=list)   # variables bound by statements (receive) until the end of the body
    is_pipe: bool = False    # its statements are processes; tensors made between them belong to the body around
    loose: dict[Span, str] = field(default_factory=dict)    # processes made directly in a pipe and not connected yet


@dataclass(frozen=True, slots=True, eq=False)
class TaskHandle:
    """The result of a kernel call; `after=[handle]` orders another call behind it."""

    id: int
    trace: WorkloadTrace
    kernel: str
    scopes: tuple[TraceScope, ...] = ()

    def __repr__(self) -> str:
        return f"TaskHandle({self.kernel})"


class MadeTask(ABC):
    """A value that stands for a task where a handle is expected."""

    __slots__ = ()

    @property
    @abstractmethod
    def handle(self) -> TaskHandle:
        """The task's handle."""


@dataclass(slots=True)
class WorkloadTrace:
    """The state of one run of a workload function."""

    name: str
    scopes: list[TraceScope] = field(default_factory=lambda: [TraceScope()])
    tensors: dict[int, Tensor] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)       # names of tensors, by id
    symbol_names: dict[int, str] = field(default_factory=dict)
    abandoned: Span | None = None
    open_vars: set[int] = field(default_factory=set)
    kernels: dict[object, object] = field(default_factory=dict)   # kernel specialisations of this trace
    awaited: AwaitedWiths = field(default_factory=AwaitedWiths)
    n_around: int = 0        # bodies around, in workloads that call this one
    fixed: dict[tuple[int, int], wl.Fixed] = field(default_factory=dict)     # (tensor id, dimension) -> extent read as a number
    ranks: MeshInUse = field(default_factory=MeshInUse)     # what is known of the mesh, if there is one
    called_in: TraceScope | None = None     # stands for the caller's body if that is a loop, branch or process

    # -- structure -----------------------------------------------------------------------------------------------------

    def append(self, item: wl.Item) -> None:
        """Append an item to the innermost body."""
        self.scopes[-1].items.append(item)

    def new_var(self, name: str) -> s.Var:
        """Return a new loop variable."""
        return s.Var(name, rewrite.fresh_var_id())

    def new_handle(self, kernel: str) -> TaskHandle:
        """Return a new task handle."""
        return TaskHandle(rewrite.fresh_handle(), self, kernel, tuple(self.scopes))

    def excludes(self, handle: TaskHandle) -> bool:
        """Tell whether a task was made in a branch that excludes the body being written."""
        choices = [scope.choice for scope in self.scopes if scope.choice is not None]
        return any(scope.closed and any(scope.choice is choice for choice in choices) for scope in handle.scopes)

    @contextmanager
    def scope(self, *variables: s.Var, choice: object = None) -> Iterator[TraceScope]:
        """Open a body for the duration of the `with` block. The first variable is the user's."""
        if self.n_around + len(self.scopes) > MOST_NESTED:
            raise WorkloadDepthError(f"more than {MOST_NESTED} loops, branches and bodies stand in each other", here(),
                                     help="compute several indices from one loop, i // n and i % n; join conditions with &")
        inner = TraceScope(var=variables[0] if variables else None, choice=choice)
        self.scopes.append(inner)
        self.open_vars.update(variable.id for variable in variables)
        try:
            yield inner
        finally:
            inner.closed = True
            if any(scope is inner for scope in self.scopes):   # loops that ended out of order were reported before
                del self.scopes[next(k for k, scope in enumerate(self.scopes) if scope is inner):]
            self.open_vars.difference_update(variable.id for variable in (*variables, *inner.received))

    def bind(self, variables: tuple[s.Var, ...]) -> None:
        """Make variables known until the end of the innermost body."""
        self.open_vars.update(variable.id for variable in variables)
        self.scopes[-1].received.extend(variables)

    def body_of_empty(self) -> TraceScope | None:
        """Return the body that allocates a Tensor.empty made now; None where one tensor serves the whole run."""
        scope = self._around_empty()
        return self.called_in if scope is self.scopes[0] else scope

    def made_empty(self, tensor: Tensor) -> None:
        """Record a Tensor.empty; in a body it is allocated anew in each iteration."""
        if tensor.made_in is not None:
            frame, span = user_frame(), here()
            tensor.rename(assigned_name(frame) or "")
            sizes = tuple(s.Const(extent) if at_most(size) is not None else self.use(size, frame, span)
                          for size, extent in zip(tensor.sizes, tensor.ref.shape, strict=True))
            known = all(isinstance(size, s.Const) for size in sizes)
            self._around_empty().items.append(flow.Fresh(tensor.ref, wl.WorkloadNote(), () if known else sizes, span))

    def _around_empty(self) -> TraceScope:
        return next(scope for scope in reversed(self.scopes) if not scope.is_pipe)

    def read_extent(self, ref: TensorRef, dim: int) -> None:
        """Record that the body uses the extent of a tensor's dimension as a Python number."""
        self.fixed.setdefault((ref.id, dim), wl.Fixed(ref, dim, here()))

    def close_loop(self, walk: Walk, var: s.Var, position: s.Var | None, inner: TraceScope, *, ordered: bool, frame: FrameType,
                   span: Span) -> None:
        """Append the loop with the body `inner`. `position`: the variable of a loop over positions that map to `var`."""
        name = self._axis_name(walk, frame)
        start, stop, step = (self.use(bound, frame, span) for bound in (walk.start, walk.stop, walk.step))
        rows = None if walk.rows is None else self.use(walk.rows, frame, span)
        refs = tuple(self.use(tensor.ref, frame, span) for tensor in walk.tensors)
        label = print_scalar(stop) if isinstance(walk.source, Symbolic) else walk.label   # with the user's names
        through = None
        if position is not None and walk.leads_to is not None:
            through = flow.Through(var, s.Element(self.use(walk.leads_to.ref, frame, span), (position,)), wl.WorkloadNote())
        self.append(flow.Loop(position or var, start, stop, step, ordered, flow.Sequence(tuple(inner.items)),
                              wl.WorkloadNote(wl.Axis(name, label, refs, rows)), through, span))

    def finish(self) -> wl.Workload:
        """Return the workload.

        Raises: K103 if a loop was left early or a branch was never opened by `with`; W103 for after= on a task moved to another workload.
        """
        self.check_whole()
        self.awaited.check()
        if len(self.scopes) > 1:
            raise SymbolicControlError("a workload's loop was begun and never ended", here(),
                                       expected="for b in P(axis): ...", found="P(axis) as a list, or next()",
                                       help="loop with a plain `for b in P(axis):`; P is no list, and next() takes only its first step")
        fixed: list[wl.Item] = [flow.Do(each) for each in self.fixed.values()]
        body = flow.Sequence((*fixed, *self.scopes[0].items))
        for node in rewrite.free_handles(body):
            raise LoopVariableError("after= names a task that has been put into another workload since", node.span,
                                    help="order whole workloads with sequential(a, b) or a >> b")
        return wl.Workload(self.name, body)

    def check_whole(self) -> None:
        """Check that no loop was left early.

        Raises: K103 if a loop of this trace was left by break or return.
        """
        if self.abandoned is not None:
            raise left_early_error("a workload's loop is left early", self.abandoned,
                                       help="the body is traced once and stands for all iterations, so break and return have "
                                            "no meaning in it; bound the loop instead: P(n)")

    # -- names of values -----------------------------------------------------------------------------------------------

    def use(self, node: Node, frame: FrameType, span: Span) -> Node:
        """Return a scalar, a view or a tensor with the user's names on its tensors and symbols.

        Raises: W103 for a loop variable outside its loop.
        """
        return rewrite.rewrite(node, lambda inner: self._named(inner, frame, span))

    def _named(self, node: object, frame: FrameType, span: Span) -> object | None:
        match node:
            case TensorRef():
                tensor = self.tensors[node.id] if node.id in self.tensors else live_tensor(node.id)
                if tensor is None:
                    raise ValueScopeError("a scalar is read from a Tensor that nothing holds any more", span,
                                          help="keep the Tensor in a variable")
                self.keep(tensor)
                name = self._tensor_name(node, frame)
                if isinstance(tensor.made_in, TraceScope) and not tensor.ref.name:     # the statement that made the tensor gave no name
                    tensor.rename(name)
                    tensor.made_in.items[:] = [
                        replace(item, tensor=tensor.ref) if isinstance(item, flow.Fresh) and item.tensor.id == node.id else item
                        for item in tensor.made_in.items]
                return replace(node, name=name, contracts=self.tensors[node.id].ref.contracts)
            case s.SymbolRef(name=""):
                return s.SymbolRef(self._extent_name(node, frame), node.id, node.dtype, node.default)
            case s.Var(name, id) if id not in self.open_vars:
                raise LoopVariableError(f"loop variable `{name}` is used outside its loop", span,
                                        help=f"move the call into `for {name} in P(...)`")
            case s.ParamScalar() | s.ParamExtent() | s.ItemRef():
                raise ValueScopeError("a kernel's own scalar is used in a workload", span, found=print_scalar(node))
            case s.AxisName(name):
                return self._axis_var(name, span)
            case _:
                return None

    def keep(self, tensor: Tensor) -> None:
        """Keep the tensor of a view alive with the trace.

        Raises: W105 for a Tensor.empty that another body makes.
        """
        if tensor.made_in is not None and tensor.made_in.closed:
            raise ValueScopeError(f"`{tensor.ref.shown}` is used behind the body that makes it", here(),
                                  help="a Tensor.empty made in a body is another one each time, and ends with it: use it there, or "
                                       "make it in front")
        if tensor.copies is not None:
            raise RankError(f"`{tensor.ref.shown}` has a copy on each rank", here(), expected=f"a rank's: {tensor.ref.shown}.on(r)",
                            found=f"the whole of a tensor of layout {tensor.layout!r}")
        self.tensors[tensor.ref.id] = tensor

    def _tensor_name(self, ref: TensorRef, frame: FrameType) -> str:
        if ref.name:
            return ref.name
        if ref.id not in self.names:
            tensor = self.tensors.get(ref.id)
            name = _name_in(frame, lambda value: isinstance(value, Tensor) and value.ref.id == ref.id)
            if not name and tensor is not None:
                name = _name_in(frame, lambda value: value is tensor.data)
            self.names[ref.id] = name
        return self.names[ref.id]

    def _axis_name(self, walk: Walk, frame: FrameType) -> str:
        source = walk.source
        name = "" if source is None or isinstance(source, int) else _name_in(frame, lambda value: value is source)
        if isinstance(walk.stop, s.SymbolRef) and not walk.stop.name:
            self.symbol_names.setdefault(walk.stop.id, name or f"axis{len(self.symbol_names)}")
        for tensor, role in zip(walk.tensors, walk.roles, strict=True):
            self.tensors[tensor.ref.id] = tensor
            if not self._tensor_name(tensor.ref, frame) and name:      # an array without a variable
                self.names[tensor.ref.id] = f"{name}_{role}"
        return name

    def _extent_name(self, extent: s.SymbolRef, frame: FrameType) -> str:
        """Return the name of a DenseDyn's extent: that of the variable that holds the axis."""
        if extent.id not in self.symbol_names:
            name = _name_in(frame, lambda value: isinstance(value, DenseDyn) and value.extent == extent)
            self.symbol_names[extent.id] = name or f"axis{len(self.symbol_names)}"
        return self.symbol_names[extent.id]

    def _axis_var(self, name: str, span: Span) -> s.Var:
        for scope in reversed(self.scopes):
            for var in (*reversed(scope.received), scope.var):
                if var is not None and var.name == name:
                    return var
        names = [var.name for scope in self.scopes for var in (scope.var, *scope.received) if var is not None]
        raise LoopVariableError(f"no loop around this has a variable `{name}`", span,
                                expected=f"one of {', '.join(names)}" if names else "a loop around the call")


_NAME_FRAMES = 4   # number of user frames, innermost first, searched for the name of a tensor or axis
_current: ContextVar[WorkloadTrace | None] = ContextVar("pto_wsp_workload_trace", default=None)


def running_trace() -> WorkloadTrace | None:
    """Return the running trace, or None: the body of a kernel that the workload calls is no part of the workload."""
    return None if is_active() else _current.get()


def refuse_left_early(body: str, stands_for: str, entered_at: int) -> None:
    """Refuse a body of `with` that is left by break or return. `entered_at`: the bytecode offset of the user's `with`.

    Raises: K103.
    """
    if left_early(user_frame(), entered_at):
        raise left_early_error(f"the body of {body} is left early", here(),
                                   help=f"it is traced once{stands_for}, so break and return have no meaning in it")


def current_trace(what: str, form: str = "") -> WorkloadTrace:
    """Return the running trace. `what`: the subject of the error; `form`: the name of a loop or branch, which other bodies have as well.

    Raises: K105 if no trace is running.
    """
    trace = running_trace()
    if trace is None:
        raise OutsideTraceError(f"{what} outside a workload", here(), help=(is_active() and form_elsewhere(form)) or
                                "write it in a function decorated with @workload, and call that function")
    return trace


def innermost_scope() -> TraceScope | None:
    """Return the body being written; None outside a workload."""
    trace = _current.get()
    return None if trace is None else trace.scopes[-1]


def is_tracing() -> bool:
    """Tell whether a workload is being traced."""
    return _current.get() is not None


def trace_workload(name: str, body: Callable[[], object], what: str = "a workload") -> tuple[wl.Workload, WorkloadTrace]:
    """Run `body` under a new trace; return the workload, and the trace with its tensors. `what`: what the user called, for an error.

    A workload traced inside another is a separate value; the caller places it.
    Raises: K105 in the body of a kernel or a function on tensors, where nobody would use the workload.
    """
    if is_active():
        raise OutsideTraceError(f"`{name}` is {what}, and was called in another body", here(),
                                help=form_elsewhere(name) or "call it in a workload, or outside of such bodies")
    trace = WorkloadTrace(name)
    outer = _current.get()
    if outer is not None:   # loop variables of the outer workload may be used inside
        trace.open_vars = set(outer.open_vars)
        trace.n_around = outer.n_around + len(outer.scopes)
        if trace.n_around > MOST_NESTED:
            raise WorkloadDepthError(f"more than {MOST_NESTED} workloads, loops and branches stand in each other", here(),
                                     help="a workload is traced once: recursion needs a Python number that ends it")
        trace.kernels = outer.kernels
        if outer.called_in is not None or any(not scope.is_pipe for scope in outer.scopes[1:]):
            trace.called_in = TraceScope(trace.scopes[0].items)
    token = _current.set(trace)
    try:
        with (no_error_lost(f"workload `{name}`"), mesh_of_trace() as trace.ranks,
              watch_tensors(trace.body_of_empty, trace.made_empty, trace.read_extent)):
            body()
        workload = trace.finish()
    except LoopVariableError as problem:
        # a variable used after a `break` is an error of the break, unless this very error ended the loop
        span = problem.span
        if trace.abandoned is not None and isinstance(span, Span) and span.line != trace.abandoned.line:
            trace.check_whole()
        raise
    finally:
        _current.reset(token)
        if trace.called_in is not None:
            trace.called_in.closed = True
    if outer is not None:
        outer.symbol_names.update(trace.symbol_names)
    return workload, trace


@dataclass(slots=True)
class Placed:
    """A workload placed by a call inside another workload: the scope and the items, which follow each other."""

    scope: TraceScope
    items: tuple[wl.Item, ...]


def place_last(trace: WorkloadTrace, before: int) -> Placed:
    """Return the items of the body being written, from index `before` on, as a placed workload."""
    return Placed(trace.scopes[-1], tuple(trace.scopes[-1].items[before:]))


def stands_here(placed: Placed | None) -> bool:
    """Tell whether a workload was placed into the body being written, or into an inner body that has ended."""
    trace = _current.get()
    return trace is not None and placed is not None and (placed.scope is trace.scopes[-1] or placed.scope.closed)


def place(body: wl.Body, tensors: Mapping[int, Tensor]) -> Placed | None:
    """Append a body, with new ids, to the workload being traced; return None if none is being traced.

    Raises: W103 for a loop variable outside its loop.
    """
    trace = _current.get()
    if trace is None:
        return None
    for var in rewrite.free_vars(body):
        if var.id not in trace.open_vars:
            raise LoopVariableError(f"loop variable `{var.name}` is used outside its loop", here(),
                                    help=f"move the workload that uses it into `for {var.name} in P(...)`")
    fresh = rewrite.with_fresh_ids(body)
    trace.tensors.update(tensors)
    trace.append(fresh)
    return Placed(trace.scopes[-1], (fresh,))


def unplace(placed: Placed) -> None:
    """Remove a placed workload, because a combinator places it elsewhere.

    Raises: W105 when it belongs to a loop that has ended.
    """
    if placed.scope.closed and is_tracing():
        raise ValueScopeError("a workload made in a loop's body is put together after the loop", here(),
                              help="put it together in the body, or call the function again: each call is a workload "
                                   "of its own")
    placed.scope.items[:] = [item for item in placed.scope.items if not any(item is part for part in placed.items)]


@user_call()
def axis(name: str) -> Symbolic:
    """Return the variable of the innermost loop with that name.

    Raises: W106 for what is no name; W103 in a workload without a loop of that name around.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise AxisError("axis takes the name of a loop variable", here(), expected='axis("b")', found=f"{name!r:.60}")
    trace = _current.get()
    if trace is None:
        return Symbolic(s.AxisName(name))
    return Symbolic(trace._axis_var(name, here()))


def _name_in(frame: FrameType, matches: Callable[[object], bool]) -> str:
    """Return the name of the variable that holds a matching value, in the user's frame or its callers' frames; "" if none does."""
    seen: FrameType | None = frame
    n_frames_left = _NAME_FRAMES
    while seen is not None and n_frames_left:
        if is_internal(seen.f_code):
            seen = seen.f_back
            continue
        n_frames_left -= 1
        for variables in (seen.f_locals, seen.f_globals):
            for name, value in list(variables.items()):
                if not name.startswith("_") and matches(value):
                    return name
        seen = seen.f_back
    return ""
