"""Print a plan for the NPU as text, for readers and golden files.

    kernel 0 double on vector: x[0:1, 1:1] of [16, 64]
    for i in range(0, 4, 1):
      launch 0 double[i](x=in X[i * 16 +16, 0 +64])
"""

from __future__ import annotations

from collections.abc import Iterator

from pto_wsp.errors import unreachable
from pto_wsp.ir.flow import AwaitEvent, Choice, Consume, Do, Fresh, Loop, Pipeline, Receive, RecordEvent, Send, Sequence, SetSlot, Sides
from pto_wsp.ir.kernel_text import print_kernel
from pto_wsp.ir.plan_text import print_check
from pto_wsp.ir.scalar import Scalar, print_scalar
from pto_wsp.npu.isa.tile_program import ParamAccess
from pto_wsp.npu.plan.arguments import allocated_by_launches
from pto_wsp.npu.plan.model import Descriptor, Intermediate, NpuItem, NpuKernel, NpuPlan, Passed, Reshaped, Scope, Window


def print_npu_plan(plan: NpuPlan) -> str:
    """Return the plan as text: tensors, symbols, kernels with the access of their parameters, and launches in program order."""
    lines = [f"npu plan {plan.name}: edges from "
             + (" and ".join(kind for kind, on in (("regions", plan.infer), ("structure", plan.structure)) if on) or "after= alone")]
    lines.extend(f"tensor {k} {slot.ref.shown}: {slot.ref.dtype} {list(slot.ref.shape)}{', allocated' if slot.allocated else ''}"
                 for k, slot in enumerate(plan.tensors))
    lines.extend(f"symbol {k} {symbol.name}: {symbol.dtype}" for k, symbol in enumerate(plan.symbols))
    for number, kernel in enumerate(plan.kernels):
        lines.append(f"kernel {number} on {kernel.core.value}:")
        lines.extend(f"  {line}" for line in (*_accesses(kernel), *print_kernel(kernel.kernel).splitlines()))
    lines.extend(_item(plan, plan.body, 0, {}))
    return "\n".join(lines) + "\n"


def _accesses(kernel: NpuKernel) -> Iterator[str]:
    for param, access in zip(kernel.kernel.memory_params, kernel.access, strict=True):
        yield f"{param.name}: {_access(access)}"


def _access(access: ParamAccess) -> str:
    rows = _axis("rows", access.rows, access.row_dim, access.row_step, access.unit_rows, access.row_group)
    cols = _axis("cols", access.cols, access.col_dim, access.col_step, access.unit_cols, access.col_group)
    return f"{rows}, {cols}{'' if access.memory is None else f', in memory {access.memory}'}"


def _axis(name: str, extent: int | None, dim: int | None, step: int, unit: bool, group: int | None) -> str:
    count = f"{name} {'?' if extent is None else extent}{'' if group is None else f' of group {group}'}"
    if dim is None:
        return count
    return f"{count} along dimension {dim}{f' by {step}' if step > 1 else ''}{', side by side' if unit else ''}"


def _item(plan: NpuPlan, item: NpuItem, depth: int, inner: dict[int, Intermediate]) -> Iterator[str]:
    pad = "  " * depth
    match item:
        case Scope(items, intermediates, tensors):
            yield f"{pad}scope:"
            for slot in tensors:
                yield f"{pad}  {plan.tensors[slot].ref.shown}{'' if slot in allocated_by_launches(item) else ' = allocate'}"
            for made in intermediates:
                rows, cols = (print_scalar(extent) for extent in made.shape)
                yield f"{pad}  {made.name}.{made.id} = {made.dtype} [{rows}, {cols}]"
            for part in items:
                yield from _item(plan, part, depth + 1, {**inner, **{made.id: made for made in intermediates}})
        case Sequence(items):
            for part in items:
                yield from _item(plan, part, depth, inner)
        case Sides(sides):
            for number, side in enumerate(sides):
                yield f"{pad}side {number}:"
                yield from _item(plan, side, depth + 1, inner)
        case Loop():
            yield from (pad + print_check(check) for check in item.note.checks)
            bounds = ", ".join(print_scalar(bound) for bound in (item.start, item.stop, item.step))
            yield f"{pad}for {item.var.name} in range({bounds}){' in order' if item.ordered else ''}:"
            if item.through is not None:
                yield from (f"{pad}  {print_check(check)}" for check in item.through.note.checks)
                yield f"{pad}  {item.through.var.name} = {print_scalar(item.through.value)}"
            yield from _item(plan, item.body, depth + 1, inner)
        case Choice(branches, otherwise):
            for number, branch in enumerate(branches):
                yield from (pad + print_check(check) for check in branch.note.checks)
                yield f"{pad}{'elif' if number else 'if'} {print_scalar(branch.condition)}:"
                yield from _item(plan, branch.body, depth + 1, inner)
            if otherwise.items:
                yield f"{pad}else:"
                yield from _item(plan, otherwise, depth + 1, inner)
        case Pipeline(stages):
            for stage in stages:
                yield f"{pad}process {stage.name}{f' × {stage.replicas}' if stage.replicas > 1 else ''}:"
                yield from _item(plan, stage.body, depth + 1, inner)
        case Consume(channel, variables, body):
            yield f"{pad}consume {plan.channels[channel].name} as ({', '.join(var.name for var in variables)}):"
            yield from _item(plan, body, depth + 1, inner)
        case Receive(channel, variables):
            yield f"{pad}receive {plan.channels[channel].name} as ({', '.join(var.name for var in variables)})"
        case Send(channel, payload):
            yield from (pad + print_check(check) for check in item.note.checks)
            yield f"{pad}send {plan.channels[channel].name} ({', '.join(map(print_scalar, payload))})"
        case RecordEvent(event):
            yield f"{pad}record {plan.events[event]}"
        case AwaitEvent(event):
            yield f"{pad}synchronize {plan.events[event]}"
        case SetSlot(slot, value):
            yield from (pad + print_check(check) for check in item.note.checks)
            yield f"{pad}slot[{slot}] = {print_scalar(value)}"
        case Do(launch):
            yield from (pad + print_check(check) for check in launch.note.checks)
            kernel = plan.kernels[launch.kernel].kernel
            args = [f"{param.name}={argument.role.value} {_argument(plan, argument, inner)}"
                    for param, argument in zip(kernel.memory_params, launch.arguments, strict=True)]
            args += [f"{param.name}={print_scalar(value.value)}" for param, value in zip(kernel.scalar_params, launch.scalars, strict=True)]
            waits = f" after {list(launch.after)}" if launch.after else ""
            index = ", ".join(print_scalar(node) for node in launch.index)
            yield f"{pad}launch {launch.kernel} {kernel.name}[{index}]({', '.join(args)}){waits}"
        case Fresh():
            unreachable("a tensor made outside a scope")


def _argument(plan: NpuPlan, argument: Descriptor | Passed, inner: dict[int, Intermediate]) -> str:
    match argument:
        case Passed(number):
            return f"{inner[number].name}.{number}"
        case Descriptor(slot, _, steps, allocates):
            return ("new " if allocates else "") + plan.tensors[slot].ref.shown + "".join(_step(step) for step in steps)


def _step(step: Window | Reshaped) -> str:
    match step:
        case Window(offset, shape):
            return f"[{', '.join(f'{print_scalar(at)} +{_many(extent)}' for at, extent in zip(offset, shape, strict=True))}]"
        case Reshaped(shape):
            return f".reshape({', '.join(map(str, shape))})"


def _many(extent: Scalar) -> str:
    text = print_scalar(extent)
    return f"({text})" if " " in text and "(" not in text else text
