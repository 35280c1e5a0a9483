"""Check a workload read as data: tensors, views, names in scope and types of arguments, as tracing would have checked them.

Later stages keep their own checks: bounds that depend on a run, races, consistency of pipelines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pto_wsp.errors import DataFormatError, PtoError
from pto_wsp.ir import flow
from pto_wsp.ir import scalar as s
from pto_wsp.ir import workload as wl
from pto_wsp.ir.codec import dumps, too_deep
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.indexing import MAX_RANK, clip, cut, pick, reshape_dims
from pto_wsp.ir.kernel import Param
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.ir.tags import WORKLOAD_TAGS
from pto_wsp.ir.view import Clip, Cut, Permute, Pick, Reshape, Step, View, place_of
from pto_wsp.trace.kernel.annotations import KernelParam, ScalarAnnotation, TensorAnnotation, TileAnnotation, annotation_of
from pto_wsp.trace.kernel.definition import KernelDef
from pto_wsp.trace.kernel_data import check_kernel, check_name, check_scalar, check_text, refuse, refuse_as_traced
from pto_wsp.trace.workload.loops import N_SLOTS
from pto_wsp.trace.workload.pipelines import MAX_DEPTH, MAX_INITIAL, MAX_PAYLOAD, MAX_REPLICAS, is_payload
from pto_wsp.trace.workload.task_call import MAX_BRACKETS, check_region, check_tile, is_label, scalar_argument

_MOST = 1 << 62


class Tensors:
    """The tensors of a workload by id, as first seen."""

    def __init__(self) -> None:
        self._known: dict[int, TensorRef] = {}

    def check(self, ref: TensorRef) -> None:
        """Raise W113 for a tensor that no array is like, or that is another one elsewhere in the workload."""
        known = self._known.get(ref.id)
        if known is None:
            check_tensor(ref)
            self._known[ref.id] = ref
        elif (known.shape, known.dtype, known.layout, known.name) != (ref.shape, ref.dtype, ref.layout, ref.name):
            refuse(f"two tensors with the id {ref.id}: {known!r:.200} and {ref!r:.200}")


def check_tensor(ref: TensorRef) -> None:
    """Raise W113 for a tensor that no array is like."""
    check_text("a tensor's name", ref.name)
    strides = ref.layout.strides
    if len(ref.shape) > MAX_RANK or len(strides) != len(ref.shape):
        refuse(f"tensor {ref.shown!r:.60} of shape {ref.shape} and strides {strides}",
               expected=f"at most {MAX_RANK} dimensions, a stride each")
    if any(n < 0 for n in ref.shape) or math.prod(ref.shape) >= _MOST or any(abs(n) >= _MOST for n in strides):
        refuse(f"tensor {ref.shown!r:.60} of shape {ref.shape} and strides {strides}", expected="extents >= 0 that fit a memory")
    if len(set(ref.contracts)) < len(ref.contracts):
        refuse(f"tensor {ref.shown!r:.60} with a promise twice")


def check_view(view: View) -> None:
    """Raise W113 for steps that indexing does not give; what indexing itself refuses raises as it does there."""
    made = View(view.tensor)
    for position, step in enumerate(view.steps):
        rank = len(place_of(made).dims)
        match step:
            case Pick(dim, index) if 0 <= dim < rank:
                made = pick(made, dim, Symbolic(index))
            case Cut(dim, start, stop, by) if 0 <= dim < rank:
                made = cut(made, dim, slice(Symbolic(start), Symbolic(stop), by))
            case Clip(limits):
                made = clip(made, limits)
            case Reshape(shape, ()):
                made = reshape_dims(made, shape)
            case Reshape(shape, (first, last)) if 0 <= first < last <= rank and last - first < rank:
                made = reshape_dims(made, shape, (first, last))
            case Permute(order) if sorted(order) == list(range(rank)):
                made = View(made.tensor, (*made.steps, step))
            case _:
                refuse(f"{step!r:.80} of a view with {rank} dimensions")
        if len(made.steps) != position + 1 or made.steps[-1] != step:
            refuse(f"{step!r:.200}", expected="a step that changes the view, as indexing writes it")


def check_place(node: s.Element | s.DimOf | s.StrideOf) -> None:
    """Raise W113 for an element without one index a dimension, and for an extent or stride of a dimension that there is not."""
    match node:
        case s.Element(tensor, index):
            if len(index) != tensor.rank or not all(s.scalar_dtype(each).is_integer for each in index):
                refuse(f"an element of {tensor.shown!r:.60} with the indices {index!r:.200}", expected="one whole number a dimension")
        case s.DimOf(tensor, dim) | s.StrideOf(tensor, dim):
            if not 0 <= dim < tensor.rank:
                refuse(f"dimension {dim} of {tensor.shown!r:.60}", expected=f"0 .. {tensor.rank - 1}")


def check_workload(workload: wl.Workload, *, bodies: bool = False) -> None:
    """Raise W113 for a workload that no trace gives. `bodies`: kernels may have bodies of their own in C and C++.

    Raises: W102 for any other workload, K107 for a body that is not allowed.
    """
    try:
        if not re.fullmatch(r"[\w<>]+", workload.name):     # including <lambda>
            refuse(f"a workload called {workload.name!r:.60}", expected="the name of a function, or several joined by _")
        seen: set[str] = set()
        for task in wl.tasks(workload.body):
            if (text := dumps(task.kernel)) not in seen:
                seen.add(text)
                check_kernel(task.kernel, bodies=bodies)
        _WorkloadChecker().body(workload.body)
    except RecursionError:
        raise too_deep() from None


class _WorkloadChecker:
    """Walks a workload in program order and keeps the names in scope."""

    def __init__(self) -> None:
        self._tensors = Tensors()
        self._vars: dict[int, s.Var] = {}         # variables in scope, by id
        self._bound: set[int] = set()             # ids of all variables bound so far
        self._handles: set[int] = set()           # handles of tasks that may be waited for
        self._made: set[int] = set()              # handles of all tasks so far
        self._symbols: dict[int, s.SymbolRef] = {}
        self._fresh: dict[int, bool] = {}         # tensors allocated in a body -> whether the body is open
        self._used: set[int] = set()              # ids of tensors used so far
        self._ends: dict[tuple[type, int], wl.ChannelRef | wl.EventRef] = {}

    @contextmanager
    def _scope(self, *variables: s.Var) -> Iterator[None]:
        """Bind variables for the duration of a `with` block, and restore the scope at its end."""
        variables_before, fresh = dict(self._vars), dict(self._fresh)
        self._bind(*variables)
        yield
        self._vars = variables_before
        self._fresh = {number: fresh.get(number, False) for number in self._fresh}

    def _bind(self, *variables: s.Var) -> None:
        for var in variables:
            check_text("a loop variable's name", var.name)
            if var.id in self._bound:
                refuse(f"the variable {var!r:.80} of two loops")
            self._bound.add(var.id)
            self._vars[var.id] = var

    # -- statements ----------------------------------------------------------------------------------------------------

    def body(self, block: wl.Body) -> None:
        """Check the items of a block, in order."""
        for item in block.items:
            self._item(item)

    def _item(self, item: wl.Item) -> None:
        assigned = flow.assignments(item)
        match item:
            case flow.Sequence():
                self.body(item)
            case flow.Do(wl.Task() as task):
                self._task(task)
            case flow.Loop():
                self._loop(item)
            case flow.Choice():
                self._choice(item)
            case flow.Sides(sides):
                self._apart(sides)
            case flow.Fresh(tensor, sizes=sizes):
                self._make(tensor, sizes)
            case flow.Silent():
                self._assign(assigned)
            case flow.Pipeline(processes):
                for process in processes:
                    self._process(process)
            case flow.Send(channel, payload, after=after):
                self._end(channel)
                if len(payload) > MAX_PAYLOAD or not all(self._scalar(each).is_integer for each in payload):
                    refuse(f"a token {payload!r:.200}", expected=f"at most {MAX_PAYLOAD} whole numbers")
                self._wait(after)
            case flow.Receive(channel, variables):
                self._end(channel)
                self._bind(*variables)
            case flow.Consume(channel, variables, block):
                self._end(channel)
                with self._scope(*variables):
                    self.body(block)
            case flow.RecordEvent(event) | flow.AwaitEvent(event):
                self._end(event)

    def _assign(self, assigned: Iterable[tuple[s.SlotValue, s.Scalar]]) -> None:
        for place, value in assigned:
            if not 0 <= place.slot < N_SLOTS or self._scalar(value).is_float:
                refuse(f"slot {place.slot} set to {print_scalar(value):.80}", expected=f"a whole number in a slot, 0 .. {N_SLOTS - 1}")

    def _loop(self, loop: wl.WorkloadLoop) -> None:
        axis = loop.note.axis
        bounds = (loop.start, loop.stop, loop.step, *(() if axis.rows is None else (axis.rows,)))
        if not all(self._scalar(bound).is_integer for bound in bounds):
            refuse("a loop with bounds that are no whole numbers")
        if not isinstance(loop.step, s.Const) or loop.step.value < 1:
            refuse(f"a loop with the step {print_scalar(loop.step):.80}", expected="a number >= 1")
        check_text("an axis's name", axis.name)
        check_text("an axis's label", axis.label)
        for tensor in axis.tensors:
            self._use(tensor)
        with self._scope(loop.var):
            if loop.through is not None:
                match loop.through.value:
                    case s.Element(tensor, (position,)) if position == loop.var and tensor.dtype.is_integer and tensor in axis.tensors:
                        self._scalar(loop.through.value)
                    case _:
                        refuse(f"a walk that leads to {print_scalar(loop.through.value):.80}", expected="an element of the axis's indices")
                self._bind(loop.through.var)
            self.body(loop.body)

    def _choice(self, choice: wl.WorkloadChoice) -> None:
        if not choice.branches:
            refuse("a choice without a branch")
        for branch in choice.branches:
            if not self._scalar(branch.condition).is_bool:
                refuse(f"a branch on {print_scalar(branch.condition):.80}", expected="a condition")
        self._apart((*(branch.body for branch in choice.branches), choice.otherwise))

    def _apart(self, sides: tuple[wl.Body, ...]) -> None:
        """Check exclusive or unordered bodies, none of which may wait for another's tasks."""
        before, behind = set(self._handles), set(self._handles)
        for side in sides:
            self._handles = set(before)
            with self._scope():
                self.body(side)
            behind |= self._handles
        self._handles = behind

    def _process(self, process: wl.WorkloadProcess) -> None:
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
        initial = end.initial if isinstance(end, wl.ChannelRef) else ()
        if len(initial) > min(depth, MAX_INITIAL) or len({len(numbers) for numbers in initial}) > 1 or not all(map(is_payload, initial)):
            refuse(f"{end!r:.200}", expected="at most as many tokens at the start as a channel holds, of whole numbers")

    def _make(self, tensor: TensorRef, sizes: tuple[s.Scalar, ...]) -> None:
        fits = [self._scalar(size).is_integer and (not isinstance(size, s.Const) or size.value == extent)
                for size, extent in zip(sizes, tensor.shape, strict=False)]
        if sizes and (len(sizes) != tensor.rank or not all(fits)):
            refuse(f"the tensor {tensor.shown!r:.60} of size {sizes!r:.200}", expected="a whole number for each dimension")
        if tensor.id in self._used or tensor.id in self._fresh:
            refuse(f"the tensor {tensor.shown!r:.60} is made where it is used already")
        self._tensors.check(tensor)
        self._fresh[tensor.id] = True

    # -- tasks ---------------------------------------------------------------------------------------------------------

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
                if isinstance(problem, DataFormatError):
                    raise
                refuse_as_traced(f"a task of kernel `{kernel.name}`", problem)
        if len(task.index) > MAX_BRACKETS or not all(self._scalar(each).is_integer for each in task.index):
            refuse(f"the bracket indices {task.index!r:.200}", expected=f"at most {MAX_BRACKETS} whole numbers")
        if not is_label(task.label):
            refuse(f"the label {task.label!r:.80}", expected="printable text")
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

    # -- scalars and tensors -------------------------------------------------------------------------------------------

    def _scalar(self, node: s.Scalar) -> DType:
        """Check that all parts of a scalar are in scope; return its dtype."""
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
        if node.name:      # the symbol of an axis has no name before its loop
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
    """Replace the function of a kernel that was read as data."""


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
