"""Check a workload that was read as data: names in scope, types of arguments, steps of views, as tracing would have found them.

What a stage behind tracing checks (bounds that depend on a run, races, pipelines that fit together) stays with that stage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pto_wsp.errors import PtoError
from pto_wsp.expr import workload as wl
from pto_wsp.expr.codec import dumps, too_deep
from pto_wsp.expr.kernel import Param
from pto_wsp.expr.rewrite import outer_nodes
from pto_wsp.expr.tags import WORKLOAD_TAGS
from pto_wsp.frontend.data.kernel import annotation_of, check_kernel
from pto_wsp.frontend.data.refuse import check_name, check_scalar, check_text, refuse, refuse_as_traced
from pto_wsp.frontend.data.view import Tensors, check_place, check_view
from pto_wsp.frontend.kernel.annotations import KernelParam, ScalarAnnotation, TensorAnnotation, TileAnnotation
from pto_wsp.frontend.kernel.definition import KernelDef
from pto_wsp.frontend.workload.csp.ends import MAX_DEPTH, MAX_PAYLOAD, MAX_REPLICAS
from pto_wsp.frontend.workload.slots import N_SLOTS
from pto_wsp.frontend.workload.task_call import MAX_BRACKETS, check_region, check_tile, scalar_argument
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.layout import TensorRef
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.symbolic import Symbolic
from pto_wsp.types.view import Cut, Pick, Step


def check_workload(workload: wl.Workload, *, bodies: bool = False) -> None:
    """Raise W102 for a workload that no trace gives. `bodies`: kernels may have bodies of their own in C and C++.

    Raises: K107 for such a body where none is allowed.
    """
    try:
        if not re.fullmatch(r"[\w<>]+", workload.name):     # <lambda> too
            refuse(f"a workload called {workload.name!r:.60}", expected="the name of a function, or several joined by _")
        seen: set[str] = set()
        for task in outer_nodes(workload.body):
            if isinstance(task, wl.Task) and (text := dumps(task.kernel)) not in seen:
                seen.add(text)
                check_kernel(task.kernel, bodies=bodies)
        _Check().body(workload.body)
    except RecursionError:
        raise too_deep() from None


class _Check:
    """Walks a workload in program order and knows what is in scope."""

    def __init__(self) -> None:
        self._tensors = Tensors()
        self._vars: dict[int, s.Var] = {}         # in scope
        self._bound: set[int] = set()             # anywhere so far
        self._handles: set[int] = set()           # of tasks that may be waited for
        self._made: set[int] = set()              # of all tasks so far
        self._symbols: dict[int, s.SymbolRef] = {}
        self._fresh: dict[int, bool] = {}         # tensors made in a body: whether that body is open
        self._used: set[int] = set()              # tensors that something has used
        self._ends: dict[tuple[type, int], wl.ChannelRef | wl.EventRef] = {}

    @contextmanager
    def _scope(self, *variables: s.Var) -> Iterator[None]:
        """Let variables be known, and forget what the body binds and makes, for the length of a `with`."""
        known, fresh = dict(self._vars), dict(self._fresh)
        self._bind(*variables)
        yield
        self._vars = known
        self._fresh = {number: fresh.get(number, False) for number in self._fresh}

    def _bind(self, *variables: s.Var) -> None:
        for var in variables:
            check_text("a loop variable's name", var.name)
            if var.id in self._bound:
                refuse(f"the variable {var!r:.80} of two loops")
            self._bound.add(var.id)
            self._vars[var.id] = var

    # ---- statements ----

    def body(self, block: wl.Block) -> None:
        """Check the items of a block, in order."""
        for item in block.items:
            self._item(item)

    def _item(self, item: wl.Item) -> None:
        match item:
            case wl.Block():
                self.body(item)
            case wl.Task():
                self._task(item)
            case wl.Loop():
                self._loop(item)
            case wl.Choice():
                self._choice(item)
            case wl.Combine(sides):
                self._apart(sides)
            case wl.SetSlot(slot, value):
                if not 0 <= slot < N_SLOTS or self._scalar(value).is_float:
                    refuse(f"slot {slot} set to {print_scalar(value):.80}", expected=f"a whole number in a slot, 0 .. {N_SLOTS - 1}")
            case wl.Fresh(tensor):
                self._make(tensor)
            case wl.Pipeline(processes):
                for process in processes:
                    self._process(process)
            case wl.Send(channel, payload, after):
                self._end(channel)
                if len(payload) > MAX_PAYLOAD or not all(self._scalar(each).is_integer for each in payload):
                    refuse(f"a token {payload!r:.200}", expected=f"at most {MAX_PAYLOAD} whole numbers")
                self._wait(after)
            case wl.Receive(channel, variables):
                self._end(channel)
                self._bind(*variables)
            case wl.Consume(channel, variables, block):
                self._end(channel)
                with self._scope(*variables):
                    self.body(block)
            case wl.Record(event) | wl.Synchronize(event):
                self._end(event)

    def _loop(self, loop: wl.Loop) -> None:
        bounds = (loop.start, loop.stop, loop.step, *(() if loop.axis.rows is None else (loop.axis.rows,)))
        if not all(self._scalar(bound).is_integer for bound in bounds):
            refuse("a loop with bounds that are no whole numbers")
        if not isinstance(loop.step, s.Const) or loop.step.value < 1:
            refuse(f"a loop with the step {print_scalar(loop.step):.80}", expected="a number >= 1")
        check_text("an axis's name", loop.axis.name)
        check_text("an axis's label", loop.axis.label)
        for tensor in loop.axis.tensors:
            self._use(tensor)
        with self._scope(loop.var):
            if loop.through is not None:
                match loop.through.value:
                    case s.Element(tensor, (position,)) if position == loop.var and tensor.dtype.is_integer and tensor in loop.axis.tensors:
                        self._scalar(loop.through.value)
                    case _:
                        refuse(f"a walk that leads to {print_scalar(loop.through.value):.80}", expected="an element of the axis's indices")
                self._bind(loop.through.var)
            self.body(loop.body)

    def _choice(self, choice: wl.Choice) -> None:
        if not choice.branches:
            refuse("a choice without a branch")
        for branch in choice.branches:
            if not self._scalar(branch.condition).is_bool:
                refuse(f"a branch on {print_scalar(branch.condition):.80}", expected="a condition")
        self._apart((*(branch.body for branch in choice.branches), choice.otherwise))

    def _apart(self, sides: tuple[wl.Block, ...]) -> None:
        """Check bodies of which none can wait for another's tasks."""
        before, behind = set(self._handles), set(self._handles)
        for side in sides:
            self._handles = set(before)
            with self._scope():
                self.body(side)
            behind |= self._handles
        self._handles = behind

    def _process(self, process: wl.Process) -> None:
        check_text("a process's name", process.name)
        if not process.name.strip() or not 1 <= process.replicas <= MAX_REPLICAS:
            refuse(f"a process {process.name!r:.60}, {process.replicas} times", expected=f"a name, and 1 .. {MAX_REPLICAS} replicas")
        for channel in (*process.consumes, *process.produces):
            self._end(channel)
        with self._scope():
            self.body(process.body)

    def _end(self, end: wl.ChannelRef | wl.EventRef) -> None:
        check_text("a channel's or event's name", end.name)
        depth = end.depth if isinstance(end, wl.ChannelRef) else 0
        if self._ends.setdefault((type(end), end.id), end) != end or not end.name.strip() or not 0 <= depth <= MAX_DEPTH:
            refuse(f"{end!r:.200}", expected="one name and one depth for each channel and event")

    def _make(self, tensor: TensorRef) -> None:
        if tensor.id in self._used or tensor.id in self._fresh:
            refuse(f"the tensor {tensor.shown!r:.60} is made where it is used already")
        self._tensors.check(tensor)
        self._fresh[tensor.id] = True

    # ---- tasks ----

    def _task(self, task: wl.Task) -> None:
        kernel = task.kernel
        if tuple(arg.param for arg in task.args) != tuple(param.name for param in kernel.params):
            refuse(f"the arguments {[arg.param for arg in task.args]!r:.200} of kernel `{kernel.name}`",
                   expected=f"{[param.name for param in kernel.params]}")
        definition = KernelDef(_no_body, kernel.name, tuple(_declared(param) for param in kernel.params), kernel.span)
        for param, arg in zip(definition.params, task.args, strict=True):
            try:
                self._argument(definition, param, arg)
            except PtoError as problem:
                if problem.code == "W102":
                    raise
                refuse_as_traced(f"a task of kernel `{kernel.name}`", problem)
        if len(task.index) > MAX_BRACKETS or not all(self._scalar(each).is_integer for each in task.index):
            refuse(f"the bracket indices {task.index!r:.200}", expected=f"at most {MAX_BRACKETS} whole numbers")
        self._wait(task.after)
        if task.handle in self._made:
            refuse(f"two tasks with the handle {task.handle}")
        self._made.add(task.handle)
        self._handles.add(task.handle)

    def _argument(self, definition: KernelDef, param: KernelParam, arg: wl.Arg) -> None:
        match param.annotation, arg:
            case ScalarAnnotation(dtype), wl.ScalarArg(_, value):
                self._scalar(value)
                if scalar_argument(definition, param, Symbolic(value), dtype, arg.span) != value:
                    refuse(f"the argument {print_scalar(value):.80}", expected=f"a symbol of {dtype}")
            case (TileAnnotation() | TensorAnnotation()) as annotation, wl.ViewArg(_, view):
                self._use(view.tensor)
                for node in view.steps:
                    for inner in _scalars_of(node):
                        self._scalar(inner)
                check_view(view)
                if isinstance(annotation, TileAnnotation):
                    check_tile(definition, param, view, annotation.type, arg.span)
                else:
                    check_region(definition, param, view, arg.span)
            case _:
                refuse(f"the argument {WORKLOAD_TAGS.name(arg)} of parameter `{param.name}`", expected=repr(param.annotation))

    def _wait(self, after: tuple[int, ...]) -> None:
        for handle in after:
            if handle not in self._handles:
                refuse(f"a wait for the task {handle}", expected="a task made before, and not in another branch or side")
        if len(set(after)) < len(after):
            refuse("a wait for one task twice")

    # ---- scalars and tensors ----

    def _scalar(self, node: s.Scalar) -> DType:
        """Return the dtype of a scalar whose parts are all in scope."""
        check_scalar(node, self._leaf)
        return s.scalar_dtype(node)

    def _leaf(self, node: s.Scalar) -> None:
        match node:
            case s.Var(_, number):
                if self._vars.get(number) != node:
                    refuse(f"the variable {node!r:.80}", expected="a variable of a loop around it")
            case s.SymbolRef():
                self._symbol(node)
            case s.Element(tensor) | s.DimOf(tensor) | s.StrideOf(tensor):
                check_place(node)
                self._use(tensor)
            case s.SlotValue(slot):
                if not 0 <= slot < N_SLOTS:
                    refuse(f"slot {slot}", expected=f"0 .. {N_SLOTS - 1}")
            case _:
                refuse(f"the scalar {node!r:.80}", expected="a scalar of the workload")

    def _symbol(self, node: s.SymbolRef) -> None:
        known = self._symbols.setdefault(node.id, node)
        if node.name:      # of an axis where its loop does not name it yet: none
            check_name("a symbol", node.name)
            if not known.name:
                self._symbols[node.id] = known = node
        storage = node.dtype is not None and node.dtype.is_storage
        if node.name not in ("", known.name) or node.default != known.default or storage or (node.default is not None and node.default < 0):
            refuse(f"the symbol {node!r:.80}", expected=repr(known))

    def _use(self, tensor: TensorRef) -> None:
        self._tensors.check(tensor)
        self._used.add(tensor.id)
        if not self._fresh.get(tensor.id, True):
            refuse(f"the tensor {tensor.shown!r:.60} behind the body that makes it")


def _no_body(*_: object) -> None:
    """Stand for the function of a kernel that was read as data."""


def _declared(param: Param) -> KernelParam:
    return KernelParam(param.name, annotation_of(param), param.span)


def _scalars_of(step: Step) -> Iterator[s.Scalar]:
    """Yield the outermost scalars of a view's step."""
    match step:
        case Pick(_, index):
            yield index
        case Cut(_, start, stop):
            yield start
            yield stop
        case _:
            pass
