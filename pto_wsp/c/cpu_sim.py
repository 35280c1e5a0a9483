"""Emit the C sources of a plan for the target cpu_sim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pto_wsp.c.kernel import KernelC, emit_kernel, prelude
from pto_wsp.c.orchestrator import lower_orchestrator
from pto_wsp.c.own_body import emit_own_body
from pto_wsp.c.printer import print_block, print_definition
from pto_wsp.c.render import CpuSimUnit, KernelUnit, render
from pto_wsp.c.syntax import c_ident
from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.values import dataclass

UNIT = "src/library.c"
_CHANNELS = ('#include "pto_channel.h"',)      # for processes of pipelines
_ROWS_A_LINE = 8
_INCLUDED = ("kernels.c", "orchestrator.c", "tables.c")


@dataclass(frozen=True, slots=True)
class SourceTree:
    """Generated files by path, and the emitted kernels."""

    files: Mapping[str, str]
    kernels: tuple[KernelC, ...]
    unit: str                    # the translation unit to compile


def symbols_of(plan: TaskPlan) -> tuple[str, ...]:
    """Return the name of each kernel's C function."""
    return tuple(f"{c_ident(use.kernel.name)}_{k}" for k, use in enumerate(plan.kernels))


def emit_cpu_sim(plan: TaskPlan, lowered: tuple[Kernel, ...], plan_digest: str) -> SourceTree:
    """Return the C sources of a plan; `lowered`: its kernels after their passes.

    The text depends on nothing but the plan: it is equal in all processes.
    """
    kernels = tuple(
        _emit(kernel, symbol, {param.name: unit for param, unit in zip(use.kernel.memory_params, use.unit_inner, strict=True)})
        for kernel, symbol, use in zip(lowered, symbols_of(plan), plan.kernels, strict=True)
    )
    orchestrator = lower_orchestrator(plan)
    unit = CpuSimUnit(
        name=plan.name,
        kernels=tuple(KernelUnit(symbol=k.symbol, scratch_bytes=k.scratch_bytes, text=k.text) for k in kernels),
        n_kernels=len(kernels),
        prelude=prelude(kernels),
        orchestrator=f"orchestrate_{c_ident(plan.name)}",
        definitions="".join(f"{part}\n\n" for part in (*_CHANNELS[:len(orchestrator.definitions)],
                                                        *map(print_definition, orchestrator.definitions))),
        body=print_block(orchestrator.body),
        plan_digest=plan_digest,
        files=_INCLUDED,
        declarations=(f"extern {_calendar(plan)};",) if plan.calendar else (),
        tables=tuple(_calendar_lines(plan)),
    )
    names = (*_INCLUDED, "pto_artifact.h", "library.c")
    return SourceTree({f"src/{name}": render(f"cpu_sim/{name}.j2", unit) for name in names}, kernels, UNIT)


def _calendar(plan: TaskPlan) -> str:
    return f"const int32_t pto_calendar[{len(plan.calendar)}][2]"


def _calendar_lines(plan: TaskPlan) -> Iterator[str]:
    """Yield the table of a plan's calendar as C; nothing if there is none."""
    if plan.calendar:
        yield f"{_calendar(plan)} = {{    /* by task: its executor, its position there */"
        for first in range(0, len(plan.calendar), _ROWS_A_LINE):
            yield "    " + " ".join(f"{{ {worker}, {position} }}," for worker, position in plan.calendar[first:first + _ROWS_A_LINE])
        yield "};"
        yield ""


def _emit(kernel: Kernel, symbol: str, unit_inner: Mapping[str, bool]) -> KernelC:
    own = kernel.c_body
    return emit_kernel(kernel, symbol, unit_inner) if own is None else emit_own_body(kernel, own, symbol, unit_inner)
