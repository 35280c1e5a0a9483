"""Split a kernel into parts for one core each.

A kernel of vector work alone, or of products alone, is one part. Of others, products and what is stored straight from their
accumulators are parts for the cube core, everything else parts for the vector core. A body of the user's own, in C++, is one part: for
the cube core where its meaning in Python, or its text, multiplies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pto_wsp.errors import InternalError
from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_text import print_kernel
from pto_wsp.expr.kernel_walk import result_of, uses_of, walk
from pto_wsp.ops.entry import Unit
from pto_wsp.ops.table import find
from pto_wsp.plan.kernel.passes import KernelObserver, KernelPass, run_kernel_passes
from pto_wsp.plan.kernel.tiles.common import merge_common
from pto_wsp.plan.npu.split.cores.distribute import Distributed, distribute
from pto_wsp.plan.npu.split.cores.flow import Flow
from pto_wsp.plan.npu.split.cores.levels import levels_of
from pto_wsp.plan.npu.split.cores.part_of import part_of
from pto_wsp.plan.npu.split.cores.parts import Part, SplitKernel
from pto_wsp.plan.npu.split.products.own_accumulators import own_accumulators
from pto_wsp.plan.npu.split.products.part_products import is_product
from pto_wsp.plan.npu.split.products.turn_loads import turn_loads
from pto_wsp.plan.npu.split.uses import NpuUse
from pto_wsp.types.scalar import ParamScalar

# of each part, after the split
PART_PASSES = {
    Unit.VECTOR: (KernelPass("merge_common", merge_common),),           # nothing is loaded twice
    Unit.CUBE: (KernelPass("turn_loads", turn_loads),                   # transpositions go into the loads
                KernelPass("merge_common", merge_common)),
}


def split_kernel(kernel: k.Kernel, use: NpuUse, observe: KernelObserver | None = None) -> SplitKernel:
    """Return the parts of a kernel after its passes.

    Raises: N102 where products and vector work depend on each other in a circle.
    """
    if kernel.cpp_body is not None:   # the user's own body: it is given all of its parameters
        multiplies = any(is_product(stmt) for stmt in walk(kernel.body)) or any("TMATMUL" in own.text for own in kernel.bodies)
        core = Unit.CUBE if multiplies else Unit.VECTOR
        return SplitKernel((Part(kernel, core, use.access, tuple(ParamScalar(p.name, p.dtype) for p in kernel.scalar_params)),))
    of = own_accumulators(kernel, use)
    if observe is not None:
        observe("own_accumulators", kernel, of.kernel)
    flow = Flow(of)
    made, crossings = distribute(flow, levels_of(flow))
    parts: list[Part] = []
    for one, name in zip(made, _names(kernel, made), strict=True):
        params = _ordered(kernel, one)
        ways = {**of.access, **{bridge.crossing.name: bridge.access for bridge in (*one.takes, *one.gives)}}
        body = run_kernel_passes(replace(one.kernel, name=name, params=params), None, PART_PASSES[one.unit])
        parts.append(part_of(body, one.unit, ways))
        _verify(parts[-1])
        if observe is not None:
            observe("split_kernel", of.kernel, parts[-1].kernel)
    return SplitKernel(tuple(parts), crossings)


def _ordered(kernel: k.Kernel, part: Distributed) -> tuple[k.Param, ...]:
    """Return the kernel's parameters and what crosses: what is given comes before the user's outputs.

    Then the tensors that the runtime makes for a task are its first outputs, whichever of both a device counts.
    """
    taken = tuple(dict.fromkeys(bridge.param(k.Role.IN) for bridge in part.takes))
    given = tuple(dict.fromkeys(bridge.param(k.Role.OUT) for bridge in part.gives))
    written = tuple(param for param in kernel.memory_params if param.role.writes)
    read = (param for param in kernel.params if param not in written)
    return (*read, *(param for param in taken if param not in given), *given, *written)


def _names(kernel: k.Kernel, parts: Sequence[Distributed]) -> tuple[str, ...]:
    """Return a name for each part: the kernel's, and what the part gives if there are several."""
    if len(parts) == 1:
        return (kernel.name,)
    names: list[str] = []
    params = {param.name for param in kernel.params}
    for number, part in enumerate(parts):
        given = sorted(part.gives, key=lambda bridge: -bridge.type.size_bytes)
        named = [bridge.crossing.name for bridge in given if bridge.value.name]
        stored = [stmt.param for stmt in walk(part.kernel.body) if isinstance(stmt, k.Store | k.Scatter) and stmt.param in params]
        label = (*named, *stored, *(bridge.crossing.name for bridge in given), f"part{number}")[0]
        name = f"{kernel.name}_{label}"
        names.append(f"{name}_{number}" if name in names else name)
    return tuple(names)


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
