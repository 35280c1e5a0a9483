"""`TaskPlan`: what the orchestrator does, the same for the interpreter, the native engine and the simulator.

A plan is a workload whose views are places in memory, whose tasks have an executor and a price, and whose bounds are guarded.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TypeAlias

from pto_wsp.arch.model import Arch
from pto_wsp.expr.kernel import Kernel, Role
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import UNKNOWN, Span
from pto_wsp.types.dtype import DType
from pto_wsp.types.layout import TensorRef
from pto_wsp.types.scalar import Const, Scalar, SymbolRef, Var
from pto_wsp.types.view import View
from pto_wsp.values import dataclass

_ZERO = Const(0)


@dataclass(frozen=True, slots=True)
class TensorSlot:
    """A tensor that the orchestrator is given. `scalars`: it reads elements of it itself. `allocated`: it is not given it, it makes it."""

    ref: TensorRef
    reads: bool
    writes: bool
    scalars: bool
    allocated: bool = False


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
    """What a check protects, as its error says it."""

    INDEX = "an index lies outside its tensor"
    TILE = "a view does not fit its tile"
    ELEMENT = "a scalar is read outside its tensor"
    EXTENT = "a loop's extent is negative"
    RESHAPE = "a view is reshaped that is not contiguous as it is bound"


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
class Submit:
    """Make one task. `labels` and `index` name it for people: the bracket indices, then the other loop variables around it."""

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
    checks: tuple[Check, ...] = ()
    worker: Scalar = _ZERO
    cost: Scalar = _ZERO
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Loop:
    """Run `body` for var in range(start, stop, step)."""

    var: Var
    start: Scalar
    stop: Scalar
    step: Scalar
    ordered: bool
    body: Sequence
    checks: tuple[Check, ...] = ()
    span: Span = field(default=UNKNOWN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Sides:
    """Sequences without an order between them."""

    sides: tuple[Sequence, ...]


@dataclass(frozen=True, slots=True)
class Sequence:
    """Items in program order."""

    items: tuple[Item, ...]


Item: TypeAlias = Submit | Loop | Sides | Sequence


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """Everything that one artifact is made from."""

    name: str
    tensors: tuple[TensorSlot, ...]
    symbols: tuple[SymbolRef, ...]
    kernels: tuple[KernelUse, ...]
    body: Sequence
    n_sites: int
    n_executors: int = 1
    window: int = 0
    infer: bool = True           # edges from overlapping regions
    structure: bool = True       # edges from program order


@dataclass(frozen=True, slots=True)
class Context:
    """What the passes are told beside the plan. `cache_bytes`: of the caches that the code will run with, None where nobody knows."""

    schedule: Schedule
    arch: Arch
    cache_bytes: int | None = None


def is_float_symbol(symbol: SymbolRef) -> bool:
    """Tell whether a symbol of a plan is bound to a float."""
    return symbol.dtype is not None and symbol.dtype.is_float


def submits(plan: TaskPlan) -> tuple[Submit, ...]:
    """Return the plan's task sites in program order."""
    found: list[Submit] = []

    def walk(item: Item) -> None:
        match item:
            case Submit():
                found.append(item)
            case Loop():
                walk(item.body)
            case Sides(sides):
                for side in sides:
                    walk(side)
            case Sequence(items):
                for inner in items:
                    walk(inner)

    walk(plan.body)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class NumberedCheck:
    """A check with its place in the orchestrator's numbering and the loop variables that are known there."""

    number: int
    check: Check
    loops: tuple[Var, ...]


def numbered_checks(plan: TaskPlan) -> tuple[NumberedCheck, ...]:
    """Return the plan's checks in the order in which the orchestrator numbers them."""
    found: list[NumberedCheck] = []

    def note(checks: tuple[Check, ...], loops: tuple[Var, ...]) -> None:
        for check in checks:
            found.append(NumberedCheck(len(found), check, loops))

    def walk(item: Item, loops: tuple[Var, ...]) -> None:
        match item:
            case Submit():
                note(item.checks, loops)
            case Loop():
                note(item.checks, loops)
                walk(item.body, (*loops, item.var))
            case Sides(sides):
                for side in sides:
                    walk(side, loops)
            case Sequence(items):
                for inner in items:
                    walk(inner, loops)

    walk(plan.body, ())
    return tuple(found)
