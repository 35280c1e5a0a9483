"""`TaskPlan`: what the orchestrator does, the same for the interpreter, the native engine and the simulator.

A plan is a workload whose views are places in memory, whose tasks have an executor and a price, and whose bounds are guarded.

Outputs of one task on the same elements: the error, for the check of a plan and for the run that finds two on one memory.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import field
from enum import Enum
from typing import TypeAlias

from pto_wsp import doors
from pto_wsp.errors import OverlappingOutputsError
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.execution_rules import ExecutionRules
from pto_wsp.ir.flow import (
    AwaitEvent,
    Branch,
    Choice,
    Consume,
    Evaluating,
    Flow,
    Fresh,
    Loop,
    Pipeline,
    Process,
    Receive,
    RecordEvent,
    Send,
    Sequence,
    Sides,
)
from pto_wsp.ir.kernel import Kernel, Role
from pto_wsp.ir.layout import TensorRef
from pto_wsp.ir.mesh import OnRank
from pto_wsp.ir.scalar import Const, Scalar, SymbolRef, Var
from pto_wsp.ir.view import View
from pto_wsp.source import UNKNOWN, Span, argument_span
from pto_wsp.values import ReadLater, dataclass

_ZERO = Const(0)


@dataclass(frozen=True, slots=True)
class FixedExtent:
    """A dimension whose declared extent the workload's body has read as a number, and where."""

    dim: int
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TensorSlot:
    """A tensor of the plan. `scalars`: the orchestrator reads elements of the tensor. `allocated`: the orchestrator allocates the tensor.

    `fresh`: a `Fresh` of the plan allocates another tensor at each execution. `kept`: bytes that tasks write to the tensor count in a
    window of bytes. `fixed`: dimensions that must be bound with the declared extents.
    """

    ref: TensorRef
    reads: bool
    writes: bool
    scalars: bool
    allocated: bool = False
    fresh: bool = False
    kept: bool = False
    fixed: tuple[FixedExtent, ...] = ()

    @property
    def only_read(self) -> bool:
        """Whether tasks or the orchestrator read the tensor, and no task writes the tensor."""
        return (self.reads or self.scalars) and not self.writes

    def is_between_tasks(self, intermediates: Set[int]) -> bool:
        """Tell whether tasks both write and read the tensor. A tensor without readers is a result; a tensor without writers is an input."""
        return self.fresh or (self.ref.id in intermediates and (self.reads or self.scalars) and self.writes)


@dataclass(frozen=True, slots=True)
class KernelUse:
    """A kernel as this plan uses it: which memory parameters have neighbours along a row side by side, and its price.

    `streamed`: the parameters whose stores need not stay in the caches. `ragged`: the outputs of which a task may keep fewer rows
    than their tile has.
    """

    kernel: Kernel
    unit_inner: tuple[bool, ...]
    streamed: tuple[str, ...] = ()
    ragged: tuple[str, ...] = ()
    cost: Scalar = _ZERO


@dataclass(frozen=True, slots=True)
class Place:
    """A parameter's view: slot of the tensor, element offset, valid rows and columns, strides in elements."""

    slot: int
    role: Role
    offset: Scalar
    extent: tuple[Scalar, Scalar]
    stride: tuple[Scalar, Scalar]
    view: View


@dataclass(frozen=True, slots=True)
class ScalarValue:
    """A scalar parameter's value and the dtype that it is passed as."""

    value: Scalar
    dtype: DType


class CheckKind(Enum):
    """The property that a check protects, in the words of its error."""

    INDEX = "an index lies outside its tensor"
    TILE = "a view does not fit its tile"
    ELEMENT = "a scalar is read outside its tensor"
    EXTENT = "a loop's extent is negative"
    CALENDAR = "the calendar has no row for a task"
    RESHAPE = "a view is reshaped that is not contiguous as it is bound"
    ROOM = "a task alone needs more than the whole window"
    KEY = "a key of the schedule gives a number that means nothing"
    SIZE = "a tensor has an extent below 0, or fits no memory"
    RANK = "a task is on a rank that the mesh does not have"
    ROWS = "a collective has more rows than there is room for"


@dataclass(frozen=True, slots=True)
class Check:
    """`lower <= value <= upper`, or the run ends with an error before anything was touched."""

    kind: CheckKind
    value: Scalar
    lower: Scalar
    upper: Scalar
    subject: str                  # as the user wrote it, e.g. X[b, i*16:(i+1)*16]
    param: str = ""               # the parameter whose argument it protects, "" for none
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ElementRead:
    """An element of a tensor that tasks write, read when tasks are made: what writes it before must have run."""

    slot: int
    offset: Scalar


@dataclass(frozen=True, slots=True)
class Precondition:
    """What comes before a node evaluates its scalars: `checks` are made, and the elements in `waits` are waited for."""

    checks: tuple[Check, ...] = ()
    waits: tuple[ElementRead, ...] = ()


@dataclass(frozen=True, slots=True)
class Submit:
    """Make one task. `labels` and `index` name it for people: the bracket indices, then the other loop variables around it.

    `label`: the text that the user adds to the name. `on`: the rank of a mesh that it runs on, None without a mesh.

    The schedule says of it: `worker`, its home; `lane`, the stream of the schedule whose tasks run one after another, from 1, 0 for none;
    `pool` of the worker's executors; `priority` among ready tasks, the highest first; `position` in a calendar. `traffic`: bytes that it
    moves between memory and its core.
    """

    site: int
    kernel: int
    index: tuple[Scalar, ...]
    labels: tuple[str, ...]
    places: tuple[Place, ...]
    scalars: tuple[ScalarValue, ...]
    handle: int
    after: tuple[int, ...]
    n_brackets: int
    loops: tuple[Var, ...]
    note: Precondition = Precondition()
    worker: Scalar = _ZERO
    cost: Scalar = _ZERO
    lane: Scalar = _ZERO
    pool: Scalar = _ZERO
    priority: Scalar = _ZERO
    position: Scalar = _ZERO
    traffic: Scalar = _ZERO
    span: Span = field(default=UNKNOWN, compare=False, repr=False)
    label: str = ""
    on: OnRank | None = None


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of a plan: how many tokens it holds, of how many scalars each is made, and the streams that send and that take.

    `latency`: cycles between the completion of what is sent and the token's appearance. `initial`: how many tokens it begins with; the
    first sends of its process send them.
    """

    name: str
    depth: int
    n_payload: int
    producers: tuple[int, ...] = ()
    consumers: tuple[int, ...] = ()
    latency: int = 0
    initial: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a plan, and the id of the workload's event that it is: another one in each pipeline."""

    name: str
    ref: int


Item: TypeAlias = Flow[Submit, Precondition, int, int, int]
Body: TypeAlias = Sequence[Submit, Precondition, int, int, int]
PlanLoop: TypeAlias = Loop[Submit, Precondition, int, int, int]
PlanBranch: TypeAlias = Branch[Submit, Precondition, int, int, int]
PlanChoice: TypeAlias = Choice[Submit, Precondition, int, int, int]
PlanEvaluating: TypeAlias = Evaluating[Submit, Precondition, int, int, int]
PlanFresh: TypeAlias = Fresh[Precondition, int]
PlanSend: TypeAlias = Send[Precondition, int]
PlanReceive: TypeAlias = Receive[int]
PlanConsume: TypeAlias = Consume[Submit, Precondition, int, int, int]
PlanRecord: TypeAlias = RecordEvent[int]
PlanAwait: TypeAlias = AwaitEvent[int]
PlanCommunication: TypeAlias = PlanSend | PlanReceive | PlanConsume | PlanRecord | PlanAwait
PlanProcess: TypeAlias = Process[Submit, Precondition, int, int, int]
PlanPipeline: TypeAlias = Pipeline[Submit, Precondition, int, int, int]
PlanSides: TypeAlias = Sides[Submit, Precondition, int, int, int]


@dataclass(frozen=True, slots=True)
class BoundAxis:
    """A ragged or sparse axis, which a run may bind anew by its name ("" for none).

    `slots`: of its tensors, in the order in which it was made of them, None for one that the plan does not read; `rows`: how many.
    """

    name: str
    sparse: bool
    slots: tuple[int | None, ...]
    rows: Scalar | None


@dataclass(frozen=True, slots=True)
class TaskPlan(ReadLater):
    """Everything that one artifact is made from. A plan from the cache reads `kernels` and `body` when they are asked for."""

    name: str
    tensors: tuple[TensorSlot, ...]
    symbols: tuple[SymbolRef, ...]
    kernels: tuple[KernelUse, ...]
    body: Body
    n_sites: int
    rules: ExecutionRules = ExecutionRules()
    infer: bool = True           # edges from overlapping regions
    structure: bool = True       # edges from program order
    channels: tuple[Channel, ...] = ()
    events: tuple[Event, ...] = ()
    n_streams: int = 1
    axes: tuple[BoundAxis, ...] = ()
    calendar: tuple[tuple[int, int], ...] = ()     # executor and position of each task, in submission order; (): no table

    def __str__(self) -> str:
        return str(doors.late_module("pto_wsp.ir.print_ir").print_ir(self))


def is_float_symbol(symbol: SymbolRef) -> bool:
    """Tell whether a symbol of a plan is bound to a float."""
    return symbol.dtype is not None and symbol.dtype.is_float


def outputs_clash(who: str, span: Span, params: tuple[str, str], views: tuple[str, str], what: str,
                  notes: tuple[str, ...] = ()) -> OverlappingOutputsError:
    """Return the error for two parameters that a task writes; `what` they share."""
    return OverlappingOutputsError(
        f"{who} writes the same elements twice: `{params[0]}` and `{params[1]}` share {what}", argument_span(span, params[1]),
        expected="outputs of a task that have no element in common", found=f"{params[0]} is {views[0]}, {params[1]} is {views[1]}",
        help="give each output elements of its own", notes=notes)
