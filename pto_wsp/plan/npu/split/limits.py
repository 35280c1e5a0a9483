"""What the device runtime takes: tensors and scalars of a task, kernels of a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pto_wsp.errors import DeviceLimitError, PtoError
from pto_wsp.plan.npu.model import Block, Launch, NpuItem, NpuKernel, NpuPlan, Repeat, Scope, Unordered

MAX_TENSORS = 32
MAX_SCALARS = 16
MAX_KERNELS = 64


def launches(item: NpuItem) -> Iterator[Launch]:
    """Yield the launches of a plan in program order."""
    match item:
        case Launch():
            yield item
        case Repeat() | Scope():
            yield from launches(item.body)
        case Unordered(parts) | Block(parts):
            for part in parts:
                yield from launches(part)


def limit_errors(plan: NpuPlan) -> tuple[PtoError, ...]:
    """Return an error for each task, and for the program, that goes beyond a limit of the runtime."""
    errors: list[PtoError] = []
    for launch in launches(plan.body):
        kernel = plan.kernels[launch.kernel]
        for what, found, most in (("tensors", len(launch.arguments), MAX_TENSORS), ("scalars", len(launch.scalars), MAX_SCALARS)):
            if found > most:
                errors.append(DeviceLimitError(f"a task of kernel `{kernel.kernel.name}` has too many {what}", launch.span,
                                               expected=f"at most {most} {what}", found=f"{found} {what}", help=_HELP[what]))
    if len(plan.kernels) > MAX_KERNELS:
        errors.append(_too_many(plan.kernels))
    return tuple(errors)


_HELP = {"tensors": "pack some into one tensor and take views of it in the kernel, or split the kernel",
         "scalars": "pass some in a tensor, or make them Constexpr"}


def _too_many(kernels: Sequence[NpuKernel]) -> PtoError:
    return DeviceLimitError("the program has too many kernels", kernels[MAX_KERNELS].kernel.span, expected=f"at most {MAX_KERNELS}",
                            found=f"{len(kernels)} for one core each",
                            help="kernels differ by their Constexpr values and how views lie in memory: make some of them Scalar, or "
                            "split the workload into programs")
