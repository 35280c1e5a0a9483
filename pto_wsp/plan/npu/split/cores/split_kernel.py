"""Split a kernel into parts for one core each.

A kernel of vector work alone, or of products alone, is one part. Of others, products and what is stored straight from their
accumulators are parts for the cube core, everything else parts for the vector core. A body of the user's own, in C++, is one part: for
the cube core where its meaning in Python, or its text, multiplies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pto_wsp.errors import InternalError
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_digest import kernel_digest
from pto_wsp.expr.kernel_text import print_kernel
from pto_wsp.expr.kernel_walk import Body, map_bodies, result_of, uses_of, walk
from pto_wsp.ops.table import find
from pto_wsp.passes.pipeline import Runner
from pto_wsp.plan.kernel.passes import KernelObserver, any_use
from pto_wsp.plan.kernel.unit import unit_of
from pto_wsp.plan.npu.split.circles.open_circles import open_circles
from pto_wsp.plan.npu.split.cores.crossings import free_name
from pto_wsp.plan.npu.split.cores.distribute import Distributed, distribute
from pto_wsp.plan.npu.split.cores.levels import levels_of
from pto_wsp.plan.npu.split.cores.part_of import part_of
from pto_wsp.plan.npu.split.cores.parts import Part, SplitKernel
from pto_wsp.plan.npu.split.passes import PART_PASSES
from pto_wsp.plan.npu.split.uses import NpuUse
from pto_wsp.types.scalar import ParamScalar


def split_kernel(kernel: k.Kernel, use: NpuUse, observe: KernelObserver | None = None, runner: Runner | None = None) -> SplitKernel:
    """Return the parts of a kernel after its passes; `runner`: runs those of the parts.

    Raises: N102 where products and vector work depend on each other in a circle.
    """
    if kernel.cpp_body is not None:   # the user's own body: it is given all of its parameters
        return SplitKernel((Part(kernel, unit_of(kernel), use.access, tuple(p.name for p in kernel.memory_params),
                                 tuple(ParamScalar(p.name, p.dtype) for p in kernel.scalar_params)),))
    run = (runner or Runner()).run
    flow = open_circles(kernel, use, observe)
    of = flow.of
    made, crossings = distribute(flow, levels_of(flow))
    parts: list[Part] = []
    known: dict[object, str] = {}          # names of kernels, by what they are
    for number, one in enumerate(made):
        names = _local_names(kernel, one)
        local = replace(one.kernel, name=_label(kernel, one, number, len(made)), params=_ordered(kernel, one, names),
                        body=tuple(_renamed(one.kernel.body, names)))
        ways = {**of.access, **{names[bridge.crossing.name]: bridge.access for bridge in (*one.takes, *one.gives)}}
        body = run(local, any_use(local), PART_PASSES[one.unit])
        part = part_of(body, one.unit, ways, {local: name for name, local in names.items()})
        same = kernel_digest(part.kernel), part.core, part.access
        if same not in known:
            known[same] = free_name(part.kernel.name, known.values())
        part = replace(part, kernel=replace(part.kernel, name=known[same]))
        _verify(part)
        parts.append(part)
        if observe is not None:
            observe("split_kernel", of.kernel, part.kernel)
    return SplitKernel(tuple(parts), crossings)


def _local_names(kernel: k.Kernel, part: Distributed) -> dict[str, str]:
    """Return what a part calls the crossings that it is given and hands on: the same in parts that do the same."""
    names: dict[str, str] = {}
    taken = {param.name for param in kernel.params}
    for bridge in (*part.takes, *part.gives):
        if bridge.crossing.name not in names:
            names[bridge.crossing.name] = free_name(bridge.crossing.label, taken)
            taken.add(names[bridge.crossing.name])
    return names


def _renamed(body: Body, names: Mapping[str, str]) -> Iterator[k.Stmt]:
    for stmt in body:
        if isinstance(stmt, k.Load | k.Store) and stmt.param in names:
            yield replace(stmt, param=names[stmt.param])
        else:
            yield map_bodies(stmt, lambda inner: tuple(_renamed(inner, names)))


def _ordered(kernel: k.Kernel, part: Distributed, names: Mapping[str, str]) -> tuple[k.Param, ...]:
    """Return the kernel's parameters and what crosses: what is given comes before the user's outputs.

    Then the tensors that the runtime makes for a task are its first outputs, whichever of both a device counts.
    """
    taken = tuple(dict.fromkeys(bridge.param(names[bridge.crossing.name], k.Role.IN) for bridge in part.takes))
    given = tuple(dict.fromkeys(bridge.param(names[bridge.crossing.name], k.Role.OUT) for bridge in part.gives))
    written = tuple(param for param in kernel.memory_params if param.role.writes)
    read = (param for param in kernel.params if param not in written)
    return (*read, *(param for param in taken if param not in given), *given, *written)


def _label(kernel: k.Kernel, part: Distributed, number: int, n_parts: int) -> str:
    """Return a name for a part: the kernel's, and what the part gives if there are several."""
    if n_parts == 1:
        return kernel.name
    params = {param.name for param in kernel.params}
    given = sorted(part.gives, key=lambda bridge: -bridge.type.size_bytes)
    named = [bridge.crossing.label for bridge in given if bridge.value.name]
    stored = [stmt.param for stmt in walk(part.kernel.body) if isinstance(stmt, k.Store | k.Scatter) and stmt.param in params]
    label = (*named, *stored, *(bridge.crossing.label for bridge in given), f"part{number}")[0]
    return f"{kernel.name}_{label}"


def _verify(part: Part) -> None:
    """Check that a part computes on one core, with values that it makes, and knows its parameters."""
    made = {result.id for stmt in walk(part.kernel.body) if (result := result_of(stmt)) is not None}
    known = {param.name for param in part.kernel.params}
    for stmt in walk(part.kernel.body):
        if isinstance(stmt, k.Compute) and find(stmt.op).unit is not part.core:
            _wrong(part, f"{stmt.op} is not for the {part.core.value} core")
        if any(value.id not in made for value in uses_of(stmt)):
            _wrong(part, "it uses a value that it does not make")
        if isinstance(stmt, k.Load | k.Store | k.Gather | k.Scatter) and stmt.param not in known:
            _wrong(part, f"it has no parameter {stmt.param}")


def _wrong(part: Part, what: str) -> None:
    raise InternalError(f"a part of kernel `{part.kernel.name}` is wrong: {what}", print_kernel(part.kernel))
