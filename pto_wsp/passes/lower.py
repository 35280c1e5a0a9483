"""Lower a workload to a plan: views become places; kernels, tensors and symbols become numbered tables.

Numbers follow first use. The result has no effect of a schedule yet; the passes of passes.py add it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import assert_never

from pto_wsp.errors import PtoError, WorkloadStructureError, raise_all
from pto_wsp.ir import scalar as s
from pto_wsp.ir import workload as wl
from pto_wsp.ir.digest import kernel_digest
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.flow import (
    AwaitEvent,
    Branch,
    Choice,
    Consume,
    Do,
    Fresh,
    Loop,
    Pipeline,
    Receive,
    RecordEvent,
    Send,
    Sequence,
    SetSlot,
    Sides,
    Through,
    walk,
)
from pto_wsp.ir.kernel import Kernel, MemoryParam
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.plan import (
    Body,
    BoundAxis,
    Check,
    CheckKind,
    FixedExtent,
    Item,
    KernelUse,
    Place,
    PlanBranch,
    PlanLoop,
    Precondition,
    ScalarValue,
    Submit,
    TaskPlan,
    TensorSlot,
)
from pto_wsp.ir.rewrite import nodes
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.view import View, ViewDim, declared, place_of
from pto_wsp.ir.waits import with_waits
from pto_wsp.passes.lower_pipelines import PipelineNumbers, pipeline_errors
from pto_wsp.passes.task_checks import element_checks, rank_checks, row_checks, size_checks, view_checks, with_constant_shapes
from pto_wsp.source import Span
from pto_wsp.values import dataclass

MAX_INDEX = 8   # indices recorded for each task: PTO_MAX_INDEX


@dataclass(slots=True)
class _Tables:
    """The tables so far, numbered by first use."""

    slots: dict[int, int] = field(default_factory=dict)
    refs: list[TensorRef] = field(default_factory=list)
    reads: set[int] = field(default_factory=set)
    writes: set[int] = field(default_factory=set)
    scalars: set[int] = field(default_factory=set)
    symbols: dict[int, s.SymbolRef] = field(default_factory=dict)
    fresh: dict[int, Span] = field(default_factory=dict)     # slots of tensors allocated in bodies, with the line
    kernels: dict[tuple[str, tuple[bool, ...]], int] = field(default_factory=dict)
    uses: list[KernelUse] = field(default_factory=list)
    positions: set[int] = field(default_factory=set)     # hidden loop variables: positions in sparse rows
    fixed: dict[int, list[FixedExtent]] = field(default_factory=dict)     # by tensor id
    n_sites: int = 0
    network: PipelineNumbers = field(default_factory=PipelineNumbers)

    def slot(self, ref: TensorRef) -> int:
        if ref.id not in self.slots:
            self.slots[ref.id] = len(self.refs)
            self.refs.append(ref)
        return self.slots[ref.id]

    def note(self, *roots: object) -> None:
        """Give slots to the tensors and symbols that `roots` refer to."""
        for root in roots:
            for node in nodes(root):
                match node:
                    case s.SymbolRef():
                        self.symbols[node.id] = _one_symbol(self.symbols.get(node.id), node)
                    case s.Element(tensor):
                        self.scalars.add(self.slot(tensor))
                    case TensorRef():
                        self.slot(node)
                    case _:
                        pass

    def fix(self, item: wl.Fixed) -> None:
        """Record, once per dimension, that a tensor must be bound with its declared extent."""
        extents = self.fixed.setdefault(item.tensor.id, [])
        if all(extent.dim != item.dim for extent in extents):
            extents.append(FixedExtent(item.dim, item.span))

    def kernel(self, kernel: Kernel, unit_inner: tuple[bool, ...]) -> int:
        key = (kernel_digest(kernel), unit_inner)
        if key not in self.kernels:
            self.kernels[key] = len(self.uses)
            self.uses.append(KernelUse(kernel, unit_inner))
        return self.kernels[key]


def lower(workload: wl.Workload) -> TaskPlan:
    """Return the plan of a workload, before the passes add the schedule.

    Raises: W110 for inconsistent processes, channels and events; W102 for a tensor allocated in a body that no task writes.
    """
    raise_all(pipeline_errors(workload.body))
    tables = _Tables()
    body = _block(workload.body, (), tables)
    slots = tuple(TensorSlot(ref, k in tables.reads, k in tables.writes, k in tables.scalars, fresh=k in tables.fresh,
                             fixed=tuple(tables.fixed.get(ref.id, ())))
                  for k, ref in enumerate(tables.refs))
    _refuse_unwritten(slots, tables.fresh)
    _refuse_changing_sizes(workload, slots)
    plan = TaskPlan(workload.name, slots, tuple(tables.symbols.values()), tuple(tables.uses), body, tables.n_sites,
                    channels=tuple(tables.network.channels), events=tuple(tables.network.events),
                    n_streams=tables.network.n_streams, axes=_axes(workload, tables.slots))
    return with_waits(with_constant_shapes(plan))


def _axes(workload: wl.Workload, slots: Mapping[int, int]) -> tuple[BoundAxis, ...]:
    """Return the distinct axes that are bound to tensors."""
    loops = ((node.note.axis, node.through) for node in walk(workload.body) if isinstance(node, Loop) and node.note.axis.tensors)
    return tuple(dict.fromkeys(BoundAxis(axis.name, through is not None, tuple(slots.get(ref.id) for ref in axis.tensors), axis.rows)
                               for axis, through in loops))


def _block(block: wl.Body, loops: tuple[s.Var, ...], tables: _Tables) -> Body:
    items: list[Item] = []
    for item in block.items:
        lowered = _item(item, loops, tables)
        items += () if lowered is None else (lowered,)
        if isinstance(item, Receive):
            loops = (*loops, *item.vars)
    return Sequence(tuple(items))


def _item(item: wl.Item, loops: tuple[s.Var, ...], tables: _Tables) -> Item | None:
    """Return an item of the plan; None for what the plan has in its tables alone."""
    match item:
        case Do(leaf):
            if isinstance(leaf, wl.Task):
                return Do(_submit(leaf, loops, tables))
            tables.fix(leaf)
            return None
        case Loop():
            return _loop(item, loops, tables)
        case Choice(branches, otherwise):
            return Choice(tuple(_branch(branch, loops, tables) for branch in branches), _block(otherwise, loops, tables))
        case SetSlot(slot, value):
            tables.note(value)
            return SetSlot(slot, value, _checked(element_checks(value, item.span)), item.span)
        case Fresh(tensor, sizes=sizes):
            slot = tables.slot(tensor)
            tables.fresh.setdefault(slot, item.span)
            tables.note(sizes)
            return Fresh(slot, _checked(size_checks(tensor, sizes, item.span)), sizes, item.span)
        case Sides(sides):
            return Sides(tuple(_block(side, loops, tables) for side in sides))
        case Sequence():
            return _block(item, loops, tables)
        case Pipeline():
            return tables.network.pipeline(item, lambda body: _block(body, loops, tables))
        case Send():
            tables.note(item.payload)
            return tables.network.send(item)
        case Receive():
            return tables.network.receive(item)
        case Consume(channel, variables, body):
            number, site = tables.network.channel(channel), tables.network.site()
            return Consume(number, variables, _block(body, (*loops, *variables), tables), site, item.span)
        case RecordEvent():
            return tables.network.record(item)
        case AwaitEvent():
            return tables.network.synchronize(item)
        case _:
            assert_never(item)


def _refuse_unwritten(slots: tuple[TensorSlot, ...], fresh: Mapping[int, Span]) -> None:
    raise_all([unwritten(slots[number].ref, span) for number, span in fresh.items() if slots[number].only_read])


def unwritten(tensor: TensorRef, span: Span) -> PtoError:
    """Return the error for a Tensor.empty that a body makes at `span` and that tasks only read."""
    return WorkloadStructureError(f"`{tensor.shown}` is read and no task writes it", span,
                                  help="a Tensor.empty made in a body holds nothing before a task has written it there; "
                                       "Tensor(array) has contents")


def _refuse_changing_sizes(workload: wl.Workload, slots: tuple[TensorSlot, ...]) -> None:
    """Refuse sizes of tensors that may change between the allocation and a use: a use evaluates them again."""
    written = {slot.ref.id for slot in slots if slot.writes}

    def changing(leaf: s.Scalar) -> bool:
        return isinstance(leaf, s.SlotValue) or (isinstance(leaf, s.Element) and leaf.tensor.id in written)

    raise_all([
        WorkloadStructureError(f"`{item.tensor.shown}` is as large as its tasks or slots say", item.span, found=print_scalar(size),
                               expected="an extent of symbols, loop variables and elements that no task writes",
                               help=f"say how large it may get: minimum(64, {print_scalar(size)})")
        for item in walk(workload.body) if isinstance(item, Fresh) for size in item.sizes if any(map(changing, s.leaves(size)))
    ])


def _checked(checks: Iterable[Check]) -> Precondition:
    return Precondition(tuple(dict.fromkeys(checks)))


def _loop(loop: wl.WorkloadLoop, loops: tuple[s.Var, ...], tables: _Tables) -> PlanLoop:
    tables.note(loop.start, loop.stop, loop.step)
    checks = [check for bound in (loop.start, loop.stop) for check in element_checks(bound, loop.span)]
    if not isinstance(loop.stop, s.Const):   # a negative extent is a mistake, not an empty loop
        checks.append(Check(CheckKind.EXTENT, loop.stop, loop.start, s.Const((1 << 63) - 1), print_scalar(loop.stop), span=loop.span))
    through = None
    if loop.through is not None:
        tables.note(loop.through.value)
        tables.positions.add(loop.var.id)
        through = Through(loop.through.var, loop.through.value, Precondition(element_checks(loop.through.value, loop.span)))
    body = _block(loop.body, (*loops, *loop.bound), tables)
    return Loop(loop.var, loop.start, loop.stop, loop.step, loop.ordered, body, _checked(checks), through, loop.span)


def _branch(branch: wl.WorkloadBranch, loops: tuple[s.Var, ...], tables: _Tables) -> PlanBranch:
    tables.note(branch.condition)
    note = _checked(element_checks(branch.condition, branch.span))
    return Branch(branch.condition, _block(branch.body, loops, tables), note, branch.span)


def _submit(task: wl.Task, loops: tuple[s.Var, ...], tables: _Tables) -> Submit:
    params = {param.name: param for param in task.kernel.memory_params}
    scalars = {param.name: param for param in task.kernel.scalar_params}
    places: list[Place] = []
    values: list[ScalarValue] = []
    unit_inner: list[bool] = []
    checks: list[Check] = []
    others = tuple(v for v in loops if v not in task.index and v.id not in tables.positions)[:max(0, MAX_INDEX - len(task.index))]
    index = (*task.index, *others)
    for node in index:
        checks.extend(element_checks(node, task.span))
    tables.note(index)
    on = task.on
    if on is not None and on.limits:
        checks.extend(row_checks(on, task.span))
        on = replace(on, limits=())
    for arg in task.args:
        match arg:
            case wl.ViewArg(name, view):
                place, unit = _place(view, params[name], tables)
                places.append(place)
                unit_inner.append(unit)
                checks.extend(view_checks(view, params[name], arg.span))
            case wl.ScalarArg(name, value):
                values.append(ScalarValue(value, scalars[name].dtype))
                checks.extend(element_checks(value, arg.span, name))
                tables.note(value)
    if on is not None:
        checks.extend(rank_checks(on, task.span))
        tables.note(on)
    labels = tuple(print_scalar(node) for node in index)
    site, tables.n_sites = tables.n_sites, tables.n_sites + 1
    return Submit(site, tables.kernel(task.kernel, tuple(unit_inner)), index, labels, tuple(places), tuple(values), task.handle,
                  task.after, len(task.index), loops, _checked(checks), span=task.span, label=task.label, on=on)


def _place(view: View, param: MemoryParam, tables: _Tables) -> tuple[Place, bool]:
    slot = tables.slot(view.tensor)
    if param.role.reads:
        tables.reads.add(slot)
    if param.role.writes:
        tables.writes.add(slot)
    spot = place_of(view)
    tables.note(spot)
    tables.note(view)       # a step behind may leave only the checks with what a step asks for: X[:lens[b]][0:1]
    unit_dim = ViewDim(s.Const(1), s.Const(0), 1)
    rows, cols = (unit_dim, spot.dims[0]) if len(spot.dims) == 1 else spot.dims
    unit = (declared(cols.stride) == s.Const(1) and _keeps_strides(cols.stride)) or cols.extent == s.Const(1)
    return Place(slot, param.role, spot.offset, (rows.extent, cols.extent), (rows.stride, cols.stride), view), unit


def _keeps_strides(stride: s.Scalar) -> bool:
    """Tell whether every array that may be bound has the declared stride; guaranteed only for a unit stride of the last dimension."""
    return all(leaf.dim == leaf.tensor.rank - 1 and leaf.tensor.layout.unit_inner
               for leaf in s.leaves(stride) if isinstance(leaf, s.StrideOf))


def _one_symbol(known: s.SymbolRef | None, use: s.SymbolRef) -> s.SymbolRef:
    """Return the merged symbol of two uses: an integer if any use needs an integer."""
    typed = replace(use, dtype=use.dtype or DType.I64)
    if known is not None and known.dtype is not None and not known.dtype.is_float:
        return known
    return typed
