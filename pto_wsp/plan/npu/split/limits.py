"""What the device runtime takes: tensors and scalars of a task, none of them empty, and kernels of a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pto_wsp.arch.isa.runtime import limit
from pto_wsp.errors import DeviceLimitError, PtoError
from pto_wsp.expr.rewrite import nodes
from pto_wsp.plan.model import Send, SetSlot, TaskPlan
from pto_wsp.plan.npu.model import Fork, Launch, NpuItem, NpuKernel, NpuPlan, Repeat, Scope
from pto_wsp.plan.npu.walk import inner_items, items_of, launches_of
from pto_wsp.plan.walk import submits
from pto_wsp.source import Span
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.view import declared, print_view

MAX_TENSORS, MAX_SCALARS, MAX_KERNELS, MAX_SCOPES = map(limit, ("tensors", "scalars", "callables", "scopes"))
READS_COMPUTED = "tensormap_and_ringbuffer"


def limit_errors(plan: NpuPlan) -> tuple[PtoError, ...]:
    """Return an error for each task, and for the program, that goes beyond a limit of the runtime."""
    errors: list[PtoError] = []
    for launch in launches_of(plan.body):
        kernel = plan.kernels[launch.kernel]
        for what, found, most in (("tensors", len(launch.arguments), MAX_TENSORS), ("scalars", len(launch.scalars), MAX_SCALARS)):
            if found > most:
                errors.append(DeviceLimitError(f"a task of kernel `{kernel.kernel.name}` has too many {what}", launch.span,
                                               expected=f"at most {most} {what}", found=f"{found} {what}", help=_HELP[what]))
    if len(plan.kernels) > MAX_KERNELS:
        errors.append(_too_many(plan.kernels))
    errors += _too_deep(plan.body, 1)      # one is around all tasks
    return tuple(errors)


def _too_deep(item: NpuItem, depth: int) -> Iterator[PtoError]:
    """Yield an error for the first scope that lies in too many others."""
    depth += isinstance(item, Scope)
    if depth > MAX_SCOPES:
        yield DeviceLimitError("tensors that the runtime allocates lie in too many scopes", next(launches_of(item)).span,
                               expected=f"at most {MAX_SCOPES} scopes, that around all tasks among them", found=f"{depth}",
                               help="make some of the tensors outside of the innermost loops")
        return
    for inner in inner_items(item):
        yield from _too_deep(inner, depth)


def empty_errors(plan: TaskPlan) -> tuple[PtoError, ...]:
    """Return an error for each view without elements, by the shapes that are declared, that a task is given: no tile has none."""
    errors: list[PtoError] = []
    for task in submits(plan):
        for place in task.places:
            extents = tuple(declared(extent) for extent in place.extent)
            if s.Const(0) in extents:
                shape = ", ".join(print_scalar(extent) for extent in extents)
                errors.append(DeviceLimitError(f"kernel `{plan.kernels[task.kernel].kernel.name}` is given no elements", task.span,
                                               expected="at least one row and one column, as every tile has",
                                               found=f"`{print_view(place.view)}`, which is [{shape}]",
                                               help="leave the task out, or declare the extents that there will be when it runs"))
    return tuple(errors)


def runtime_errors(plan: NpuPlan, runtime: str) -> tuple[PtoError, ...]:
    """Return an error for each task and loop for which the named runtime would have to read elements that it cannot read.

    One of the runtimes makes all tasks before it runs one: it reads what is given, never what tasks write.
    """
    errors: list[PtoError] = []
    written = {slot.ref.id for slot in plan.tensors if slot.writes or slot.allocated}
    found = ((span, node) for item in items_of(plan.body) for span, parts in _asked(item) for node in nodes(parts)
             if isinstance(node, s.Element))
    for span, node in dict.fromkeys(found):
        if runtime != READS_COMPUTED and node.tensor.id in written:
            errors.append(DeviceLimitError(f"the runtime {runtime} cannot read `{print_scalar(node)}`, which tasks write", span,
                                           expected=f"the runtime {READS_COMPUTED}, or a tensor that tasks only read", found=runtime,
                                           help=f"{runtime} makes all tasks before it runs one; make the number a Symbol, or give it in a "
                                                "tensor"))
        elif node.tensor.dtype not in _READABLE:
            errors.append(DeviceLimitError(f"the device's runtime cannot read `{print_scalar(node)}`", span,
                                           expected=f"one of {', '.join(map(str, _READABLE))}", found=str(node.tensor.dtype),
                                           help="hold the numbers that make tasks in an integer tensor"))
    return tuple(errors)


def _asked(item: NpuItem) -> Iterator[tuple[Span, object]]:
    """Yield what an item evaluates while tasks are made, what is inside it aside, with the lines that ask for it."""
    match item:
        case Launch():
            yield item.span, item
        case SetSlot(value=value):
            yield item.span, value
        case Send(payload=payload):
            yield item.span, payload
        case Repeat(start=start, stop=stop, step=step, lead=lead):
            yield item.span, (start, stop, step, () if lead is None else lead.value)
        case Fork(ways):
            yield from ((way.span, way.condition) for way in ways)
        case Scope(intermediates, body) if intermediates:
            yield next(launches_of(body)).span, intermediates
        case _:
            pass


_READABLE = (DType.I8, DType.I16, DType.I32, DType.I64, DType.U8, DType.U16, DType.U32, DType.U64, DType.BOOL, DType.F32, DType.F64)
_HELP = {"tensors": "pack some into one tensor and take views of it in the kernel, or split the kernel",
         "scalars": "pass some in a tensor, or make them Constexpr"}


def _too_many(kernels: Sequence[NpuKernel]) -> PtoError:
    return DeviceLimitError("the program has too many kernels", kernels[MAX_KERNELS].kernel.span, expected=f"at most {MAX_KERNELS}",
                            found=f"{len(kernels)} for one core each",
                            help="make what differs between them Scalar, bind views that lie in memory alike, or make several programs")
