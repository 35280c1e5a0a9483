"""The plan for the NPU: the launches of a program in program order, and the kernels that they run.

An `NpuPlan` differs from a `TaskPlan` in two ways. A kernel runs on one core, so a kernel with products and vector work has become several,
whose launches pass intermediates to each other. An argument is a descriptor with dimensions instead of an offset and two strides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TypeAlias

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.flow import Choice, Communication, Consume, Do, Evaluating, Flow, Loop, Pipeline, Process, Send, Sequence, Sides, children
from pto_wsp.ir.kernel import Kernel, Role
from pto_wsp.ir.plan import Channel, Precondition, ScalarValue, TensorSlot
from pto_wsp.ir.scalar import Scalar, SymbolRef
from pto_wsp.npu.isa.tile_program import ParamAccess
from pto_wsp.ops.entry import Unit
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class NpuKernel:
    """A kernel for one kind of core, with the access of each memory parameter. Its index in `NpuPlan.kernels` is its func_id."""

    kernel: Kernel
    core: Unit
    access: tuple[ParamAccess, ...]      # of the memory parameters, in order


@dataclass(frozen=True, slots=True)
class Window:
    """A box of an array: `shape` elements from `offset` on, with one entry per dimension."""

    offset: tuple[Scalar, ...]
    shape: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Reshaped:
    """The same elements in another shape; the array must be contiguous."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A part of a tensor as a view of the runtime, with the tensor's dimensions, so that the runtime finds overlaps exactly.

    `allocates`: the launch allocates the tensor, which nothing has used before, and takes the whole of it.
    """

    slot: int                            # in NpuPlan.tensors
    role: Role
    steps: tuple[Window | Reshaped, ...] = ()
    allocates: bool = False


@dataclass(frozen=True, slots=True)
class Intermediate:
    """A tensor that the runtime allocates to pass values between the tasks of a split kernel."""

    id: int
    name: str
    dtype: DType
    shape: tuple[Scalar, Scalar]


@dataclass(frozen=True, slots=True)
class Passed:
    """A whole intermediate as an argument. The first task of the intermediate's scope with role OUT allocates it."""

    intermediate: int
    role: Role


@dataclass(frozen=True, slots=True)
class Launch:
    """Submit one task. `source`: the site of the plan's Submit that the launch implements; `part`: the part of the split kernel."""

    source: int
    part: int
    kernel: int
    arguments: tuple[Descriptor | Passed, ...]
    scalars: tuple[ScalarValue, ...]
    index: tuple[Scalar, ...]
    labels: tuple[str, ...]
    handle: int
    after: tuple[int, ...]
    note: Precondition = Precondition()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


NpuItem: TypeAlias = Flow[Launch, Precondition, int, int, int]
NpuBody: TypeAlias = Sequence[Launch, Precondition, int, int, int]
NpuEvaluating: TypeAlias = Evaluating[Launch, Precondition, int, int, int]
NpuLoop: TypeAlias = Loop[Launch, Precondition, int, int, int]
NpuChoice: TypeAlias = Choice[Launch, Precondition, int, int, int]
NpuSides: TypeAlias = Sides[Launch, Precondition, int, int, int]
NpuCommunication: TypeAlias = Communication[Launch, Precondition, int, int, int]
NpuSend: TypeAlias = Send[Precondition, int]
NpuConsume: TypeAlias = Consume[Launch, Precondition, int, int, int]
NpuPipeline: TypeAlias = Pipeline[Launch, Precondition, int, int, int]
NpuProcess: TypeAlias = Process[Launch, Precondition, int, int, int]
Around: TypeAlias = NpuLoop | NpuChoice | NpuConsume | NpuPipeline      # what makes it depend on a run how often something inside is done


@dataclass(frozen=True, slots=True)
class Scope(Sequence[Launch, Precondition, int, int, int]):
    """A sequence of items with intermediate tensors, which the runtime frees after the sequence.

    A scope whose launches all have the same source implements that one task, with or without loops. `tensors`: slots of the workload's
    intermediate tensors that are allocated at the start of the scope, because no launch in the scope allocates them; a scope with such
    tensors is not a task.
    """

    intermediates: tuple[Intermediate, ...] = ()
    tensors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NpuPlan:
    """The content of one package."""

    name: str
    tensors: tuple[TensorSlot, ...]
    symbols: tuple[SymbolRef, ...]
    kernels: tuple[NpuKernel, ...]
    body: NpuBody
    infer: bool = True           # edges from overlapping regions
    structure: bool = True       # edges from program order
    channels: tuple[Channel, ...] = ()
    events: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[TensorSlot, ...]:
        """Return the tensors that a run binds, in order."""
        return tuple(slot for slot in self.tensors if not slot.allocated)


def launches_within(item: NpuItem, around: tuple[Around, ...] = ()) -> Iterator[tuple[Launch, tuple[Around, ...]]]:
    """Yield every launch of an item with the loops and forks around it, outermost first."""
    if isinstance(item, Do):
        yield item.leaf, around
    inside = (*around, item) if isinstance(item, Loop | Choice | Consume | Pipeline) else around
    for inner in children(item):
        yield from launches_within(inner, inside)
