"""Print a plan for the NPU as text, for readers and golden files.

    kernel 0 double on vector: x[0:1, 1:1] of [16, 64]
    for i in range(0, 4, 1):
      launch 0 double[i](x=in X[i * 16 +16, 0 +64])
"""

from __future__ import annotations

from collections.abc import Iterator

from pto_wsp.errors import unreachable
from pto_wsp.ir.flow import Fresh
from pto_wsp.ir.kernel_text import print_kernel
from pto_wsp.ir.plan import Precondition
from pto_wsp.ir.plan_text import FlowLines, print_check
from pto_wsp.ir.scalar import Scalar, print_scalar
from pto_wsp.npu.isa.tile_program import ParamAccess
from pto_wsp.npu.plan.arguments import allocated_by_launches
from pto_wsp.npu.plan.model import Descriptor, Intermediate, Launch, NpuItem, NpuKernel, NpuPlan, Passed, Reshaped, Scope, Window


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
    lines.extend(_LaunchLines(plan).item(plan.body, 0))
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


class _LaunchLines(FlowLines[Launch]):
    """Prints the launches of a plan. `inner`: the intermediates of the scopes around, by number."""

    def __init__(self, plan: NpuPlan) -> None:
        super().__init__([channel.name for channel in plan.channels], plan.events, streams=False)
        self.plan = plan
        self.inner: dict[int, Intermediate] = {}

    def item(self, item: NpuItem, depth: int) -> Iterator[str]:
        """Yield the lines of an item."""
        if not isinstance(item, Scope):
            yield from super().item(item, depth)
            return
        pad = "  " * depth
        yield f"{pad}scope:"
        for slot in item.tensors:
            yield f"{pad}  {self.plan.tensors[slot].ref.shown}{'' if slot in allocated_by_launches(item) else ' = allocate'}"
        for made in item.intermediates:
            rows, cols = (print_scalar(extent) for extent in made.shape)
            yield f"{pad}  {made.name}.{made.id} = {made.dtype} [{rows}, {cols}]"
            self.inner[made.id] = made
        for part in item.items:
            yield from self.item(part, depth + 1)

    def leaf(self, launch: Launch, pad: str) -> Iterator[str]:
        """Yield the lines of a launch."""
        yield from self.before(launch.note, pad)
        kernel = self.plan.kernels[launch.kernel].kernel
        args = [f"{param.name}={argument.role.value} {_argument(self.plan, argument, self.inner)}"
                for param, argument in zip(kernel.memory_params, launch.arguments, strict=True)]
        args += [f"{param.name}={print_scalar(value.value)}" for param, value in zip(kernel.scalar_params, launch.scalars, strict=True)]
        waits = f" after {list(launch.after)}" if launch.after else ""
        index = ", ".join(print_scalar(node) for node in launch.index)
        yield f"{pad}launch {launch.kernel} {kernel.name}[{index}]({', '.join(args)}){waits}"

    def before(self, note: Precondition, pad: str) -> Iterator[str]:
        """Yield the checks before the scalars of a statement."""
        yield from (pad + print_check(check) for check in note.checks)

    def fresh(self, item: Fresh[Precondition, int], pad: str) -> Iterator[str]:
        """Raise: a plan for the NPU makes its tensors in scopes."""
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
