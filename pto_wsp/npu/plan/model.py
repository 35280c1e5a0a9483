"""The plan for the NPU: the launches of a program in program order, and the kernels that they run.

An `NpuPlan` differs from a `TaskPlan` in two ways. A kernel runs on one core, so a kernel with products and vector work has become several,
whose launches pass intermediates to each other. An argument is a descriptor with dimensions instead of an offset and two strides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TypeAlias

from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel import Kernel, Role
from pto_wsp.ir.plan import AwaitEvent, Channel, Check, Receive, RecordEvent, ScalarValue, Send, SetSlot, TensorSlot
from pto_wsp.ir.scalar import Scalar, SymbolRef, Var
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
    """Submit one task. `source`: the site of the Submit that it implements; `part`: its part of the split kernel."""

    source: int
    part: int
    kernel: int
    arguments: tuple[Descriptor | Passed, ...]
    scalars: tuple[ScalarValue, ...]
    index: tuple[Scalar, ...]
    labels: tuple[str, ...]
    handle: int
    after: tuple[int, ...]
    checks: tuple[Check, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Scope:
    """A body with intermediates of its own, freed behind it. One whose launches have one source is that task, whatever loops it has.

    `tensors`: slots of the workload's own intermediate tensors, which are made where the body begins where no launch in it allocates
    them. It is no task then.
    """

    intermediates: tuple[Intermediate, ...]
    body: Block
    tensors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Lead:
    """What a position of a sparse row leads to: in each turn of its loop `var` is `value`, which its checks protect."""

    var: Var
    value: Scalar
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Repeat:
    """Run `body` for var in range(start, stop, step). `ordered`: its turns come one after the other. `lead`: of a sparse walk."""

    var: Var
    start: Scalar
    stop: Scalar
    step: Scalar
    ordered: bool
    body: Block
    checks: tuple[Check, ...] = ()
    lead: Lead | None = None
    span: Span = field(default=UNKNOWN, compare=False, repr=False)

    @property
    def bound(self) -> tuple[Var, ...]:
        """The variables that have another value in each turn."""
        return (self.var,) if self.lead is None else (self.var, self.lead.var)


@dataclass(frozen=True, slots=True)
class Way:
    """A body of a fork with its condition; `checks` come before the condition, and only where no earlier condition held."""

    condition: Scalar
    body: Block
    checks: tuple[Check, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Fork:
    """The first way whose condition holds, else `otherwise`."""

    ways: tuple[Way, ...]
    otherwise: Block

    @property
    def bodies(self) -> tuple[Block, ...]:
        """What may run: one of these does."""
        return (*(way.body for way in self.ways), self.otherwise)


@dataclass(frozen=True, slots=True)
class Unordered:
    """Blocks without an order between them."""

    sides: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Drain:
    """Take tokens from a channel of the plan in order, until it is closed and empty, with `body` for each."""

    channel: int
    vars: tuple[Var, ...]
    body: Block
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Stage:
    """A process of a network, `replicas` times; `stream` is the number of the first."""

    name: str
    body: Block
    replicas: int
    stream: int
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Network:
    """Processes side by side, with channels and events of the plan that are new each time control comes here."""

    stages: tuple[Stage, ...]
    channels: tuple[int, ...]
    events: tuple[int, ...]
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Block:
    """Items in program order."""

    items: tuple[NpuItem, ...]


Communication: TypeAlias = Send | Receive | RecordEvent | AwaitEvent
NpuItem: TypeAlias = Launch | Repeat | Fork | SetSlot | Unordered | Scope | Block | Network | Drain | Communication


@dataclass(frozen=True, slots=True)
class NpuPlan:
    """The content of one package."""

    name: str
    tensors: tuple[TensorSlot, ...]
    symbols: tuple[SymbolRef, ...]
    kernels: tuple[NpuKernel, ...]
    body: Block
    infer: bool = True           # edges from overlapping regions
    structure: bool = True       # edges from program order
    channels: tuple[Channel, ...] = ()
    events: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[TensorSlot, ...]:
        """Return the tensors that a run binds, in order."""
        return tuple(slot for slot in self.tensors if not slot.allocated)


Around: TypeAlias = Repeat | Fork | Drain | Network      # what makes it depend on a run how often something inside is done


def inner_items(item: NpuItem) -> tuple[NpuItem, ...]:
    """Return the items directly inside an item, in program order."""
    match item:
        case Repeat(body=body) | Scope(body=body) | Drain(body=body):
            return (body,)
        case Fork():
            return item.bodies
        case Unordered(parts) | Block(parts):
            return parts
        case Network(stages):
            return tuple(stage.body for stage in stages)
        case Launch() | SetSlot() | Send() | Receive() | RecordEvent() | AwaitEvent():
            return ()


def items_of(item: NpuItem) -> Iterator[NpuItem]:
    """Yield an item and every one inside it, parents first."""
    yield item
    for inner in inner_items(item):
        yield from items_of(inner)


def communicates(item: NpuItem) -> bool:
    """Tell whether a process that does an item may have to wait for others in it."""
    return any(isinstance(inner, Drain | Send | Receive | RecordEvent | AwaitEvent) for inner in items_of(item))


def launches_of(item: NpuItem) -> Iterator[Launch]:
    """Yield every launch of an item."""
    return (inner for inner in items_of(item) if isinstance(inner, Launch))


def launches_within(item: NpuItem, around: tuple[Around, ...] = ()) -> Iterator[tuple[Launch, tuple[Around, ...]]]:
    """Yield every launch of an item with the loops and forks around it, outermost first."""
    if isinstance(item, Launch):
        yield item, around
    inside = (*around, item) if isinstance(item, Repeat | Fork | Drain | Network) else around
    for inner in inner_items(item):
        yield from launches_within(inner, inside)
