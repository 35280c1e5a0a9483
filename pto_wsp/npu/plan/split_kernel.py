"""Split a kernel into parts for one core each.

A kernel of vector work alone, or of products alone, is one part. In other kernels, products and stores straight from their accumulators go
to parts for the cube core, and all other statements to parts for the vector core. A user's own C++ body is one part, for the cube core if
its Python meaning or its text multiplies matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pto_wsp.errors import InternalError, NpuOpError
from pto_wsp.ir import kernel as k
from pto_wsp.ir.digest import kernel_digest
from pto_wsp.ir.kernel_text import print_kernel
from pto_wsp.ir.kernel_walk import Body, map_bodies, result_of, uses_of, walk
from pto_wsp.ir.names import Names
from pto_wsp.ir.scalar import ParamScalar
from pto_wsp.npu.plan.circles import open_circles
from pto_wsp.npu.plan.descriptors import NpuUse
from pto_wsp.npu.plan.flow import Statements, levels_of
from pto_wsp.npu.plan.parts import Distributed, Part, SplitKernel, distribute, part_of
from pto_wsp.npu.plan.passes import PART_PASSES
from pto_wsp.ops.table import find
from pto_wsp.passes.kernel.context import unit_of
from pto_wsp.passes.kernel.passes import KernelObserver, any_use
from pto_wsp.passes.pipeline import Runner


def split_kernel(kernel: k.Kernel, use: NpuUse, observe: KernelObserver | None = None, runner: Runner | None = None) -> SplitKernel:
    """Return the parts of a kernel, each after its passes. Parts with equal bodies get equal kernels.

    `observe` receives each rewrite; `runner` runs the passes of the parts.

    Raises: N102 if products and vector work depend on each other in a cycle.
    """
    if kernel.cpp_body is not None:   # a user's own body takes all parameters
        return SplitKernel((Part(kernel, unit_of(kernel), use.access, tuple(p.name for p in kernel.memory_params),
                                 tuple(ParamScalar(p.name, p.dtype) for p in kernel.scalar_params)),))
    run = (runner or Runner()).run
    flow = open_circles(kernel, use, observe)
    of = flow.of
    _refuse_items(of)
    made, crossings = distribute(flow, levels_of(flow))
    parts: list[Part] = []
    kernel_names: dict[object, str] = {}          # kernel names, by digest, core and access
    given = Names()
    for number, piece in enumerate(made):
        names = _local_names(kernel, piece)
        local = replace(piece.kernel, name=_label(kernel, piece, number, len(made)), params=_ordered(kernel, piece, names),
                        body=tuple(_renamed(piece.kernel.body, names)))
        ways = {**of.access, **{names[bridge.crossing.name]: bridge.access for bridge in (*piece.takes, *piece.gives)}}
        body = run(local, any_use(local), PART_PASSES[piece.unit])
        part = part_of(body, piece.unit, ways, {local: name for name, local in names.items()})
        same = kernel_digest(part.kernel), part.core, part.access
        if same not in kernel_names:
            kernel_names[same] = given.take(part.kernel.name)
        part = replace(part, kernel=replace(part.kernel, name=kernel_names[same]))
        _verify(part)
        parts.append(part)
        if observe is not None:
            observe("split_kernel", of.kernel, part.kernel)
    return SplitKernel(tuple(parts), crossings)


def _refuse_items(of: Statements) -> None:
    """Raise N103 for an item beside products that the parts of the kernel cannot read: a part reads i32 and i64 of unwritten parameters."""
    for leaf in of.leaves:
        if not isinstance(item := leaf.stmt, k.Item) or id(item) not in of.items:
            continue
        maker = of.makers[item.value.id].stmt
        if not isinstance(maker, k.Load) or maker.param in of.stored or not item.item.dtype.is_index:
            raise NpuOpError(f"kernel `{of.kernel.name}`: a kernel that multiplies matrices cannot read this item on the NPU", item.span,
                             expected="an element, i32 or i64, of a parameter that the kernel does not write",
                             found=f"`pto.item` for `{item.item.name}`, and a matrix product",
                             help="read the number in the workload, K[table[b, j]], or pass it as a Scalar parameter")


def _local_names(kernel: k.Kernel, part: Distributed) -> dict[str, str]:
    """Return the names of the crossings inside a part, chosen so that parts with equal bodies use equal names."""
    names: dict[str, str] = {}
    given = Names(param.name for param in kernel.params)
    for bridge in (*part.takes, *part.gives):
        if bridge.crossing.name not in names:
            names[bridge.crossing.name] = given.take(bridge.crossing.label)
    return names


def _renamed(body: Body, names: Mapping[str, str]) -> Iterator[k.Stmt]:
    for stmt in body:
        if isinstance(stmt, k.Load | k.Store) and stmt.param in names:
            yield replace(stmt, param=names[stmt.param])
        else:
            yield map_bodies(stmt, lambda inner: tuple(_renamed(inner, names)))


def _ordered(kernel: k.Kernel, part: Distributed, names: Mapping[str, str]) -> tuple[k.Param, ...]:
    """Return the parameters of a part: the kernel's, with the crossings before the user's outputs.

    The tensors that the runtime allocates for a task are then its first outputs, in either way of counting outputs.
    """
    taken = tuple(dict.fromkeys(bridge.param(names[bridge.crossing.name], k.Role.IN) for bridge in part.takes))
    given = tuple(dict.fromkeys(bridge.param(names[bridge.crossing.name], k.Role.OUT) for bridge in part.gives))
    written = tuple(param for param in kernel.memory_params if param.role.writes)
    read = (param for param in kernel.params if param not in written)
    return (*read, *(param for param in taken if param not in given), *given, *written)


def _label(kernel: k.Kernel, part: Distributed, number: int, n_parts: int) -> str:
    """Return a name for a part: the kernel's name, followed by the part's main result if there are several parts."""
    if n_parts == 1:
        return kernel.name
    params = {param.name for param in kernel.params}
    given = sorted(part.gives, key=lambda bridge: -bridge.type.size_bytes)
    named = [bridge.crossing.label for bridge in given if bridge.value.name]
    stored = [stmt.param for stmt in walk(part.kernel.body) if isinstance(stmt, k.Store | k.Scatter) and stmt.param in params]
    label = (*named, *stored, *(bridge.crossing.label for bridge in given), f"part{number}")[0]
    return f"{kernel.name}_{label}"


def _verify(part: Part) -> None:
    """Check that a part computes on one core, defines the values it uses, and declares the parameters it uses."""
    made = {result.id for stmt in walk(part.kernel.body) if (result := result_of(stmt)) is not None}
    param_names = {param.name for param in part.kernel.params}
    for stmt in walk(part.kernel.body):
        if isinstance(stmt, k.Compute) and find(stmt.op).unit is not part.core:
            _wrong(part, f"{stmt.op} is not for the {part.core.value} core")
        if any(value.id not in made for value in uses_of(stmt)):
            _wrong(part, "it uses a value that it does not make")
        if isinstance(stmt, k.Load | k.Store | k.Gather | k.Scatter) and stmt.param not in param_names:
            _wrong(part, f"it has no parameter {stmt.param}")


def _wrong(part: Part, what: str) -> None:
    raise InternalError(f"a part of kernel `{part.kernel.name}` is wrong: {what}", print_kernel(part.kernel))
