"""`NpuPlan`: the tasks of a plan as the device runtime is given them.

It differs from a `TaskPlan` in what the device asks for: a kernel runs on one core, so one that mixes products and vector work has become
several tasks with intermediates between them; and a task's argument is a descriptor with dimensions, not an offset and two strides.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from pto_wsp.expr.kernel import Kernel, Role
from pto_wsp.expr.tile_program import ParamAccess
from pto_wsp.ops.entry import Unit
from pto_wsp.plan.model import AwaitEvent, Channel, Check, Receive, RecordEvent, ScalarValue, Send, SetSlot, TensorSlot
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Scalar, SymbolRef, Var
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class NpuKernel:
    """A kernel for one kind of core, and how it finds its parameters. Its place in `NpuPlan.kernels` is its func_id."""

    kernel: Kernel
    core: Unit
    access: tuple[ParamAccess, ...]      # of its memory parameters, in order


@dataclass(frozen=True, slots=True)
class Window:
    """`shape` elements from `offset` on, an entry for each dimension of what it is taken from."""

    offset: tuple[Scalar, ...]
    shape: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Reshaped:
    """The same elements in another shape; what it is taken from is contiguous."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A part of a tensor, as the runtime's own view: it keeps the tensor's dimensions, so that overlaps are found exactly.

    `allocates`: the launch makes the tensor, which nothing used before and which it is given whole.
    """

    slot: int                            # in NpuPlan.tensors
    role: Role
    steps: tuple[Window | Reshaped, ...] = ()
    allocates: bool = False


@dataclass(frozen=True, slots=True)
class Intermediate:
    """A tensor that the runtime allocates: between the tasks that a kernel was split into."""

    id: int
    name: str
    dtype: DType
    shape: tuple[Scalar, Scalar]


@dataclass(frozen=True, slots=True)
class Passed:
    """An intermediate, whole. The first task of its scope that is given it with role OUT allocates it."""

    intermediate: int
    role: Role


@dataclass(frozen=True, slots=True)
class Launch:
    """Submit one task. `source`: the Submit (by site) that it comes from; `part`: which of the tasks that its kernel became."""

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
    """Everything that one package is made from."""

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
        """The tensors that the package is given, in order."""
        return tuple(slot for slot in self.tensors if not slot.allocated)
