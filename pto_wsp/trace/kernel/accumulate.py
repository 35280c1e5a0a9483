"""Make kernels of accumulating parameters: the task's own part, and the kernel that combines the parts with a tensor.

A task of a kernel with `Acc` parameters is two tasks. The first writes its part of each into memory of its own, so tasks of different
iterations run side by side. The second combines the parts with what the tensors hold; these tasks follow each other in program order.

>>> @kernel
... def partial(x: In[Tile[8, 64, F32]], total: Acc[Tile[8, 1, F32]]):
...     pto.store(total, pto.rowsum(x))
kernel partial(x: In[Tile[8, 64, f32]], total: Out[Tile[8, 1, f32]])
kernel partial_acc(total_part: In[Tile[8, 1, f32]], total: Acc[Tile[8, 1, f32]])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pto_wsp.errors import BufferMisuseError, KernelSignatureError, raise_all
from pto_wsp.ir import kernel as k
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.kernel_walk import result_of, walk
from pto_wsp.ops.entries.create import expand
from pto_wsp.ops.entries.elementwise import add, maximum, minimum, mul
from pto_wsp.ops.entry import activate
from pto_wsp.ops.spec import Elementwise
from pto_wsp.source import Span
from pto_wsp.trace.kernel.annotations import KernelParam, SizedTileAnnotation, TileAnnotation
from pto_wsp.trace.kernel.tile_value import TileParamRef
from pto_wsp.trace.kernel.trace import KernelTrace

_OPS: Mapping[str, Elementwise] = dict(zip(k.COMBINES, (add, maximum, minimum, mul), strict=True))


def check_accumulating(kernel: str, params: Sequence[KernelParam], bodies: Sequence[k.OwnBody], *, instructions: bool) -> None:
    """Check that a kernel with Acc parameters has a body of tile operations, whose stores are known.

    Raises: K101 for a kernel of instructions, or with a body in C or C++.
    """
    if bodies or instructions:
        what = "of instructions" if instructions else "with a body of its own"
        raise_all([KernelSignatureError(f"kernel `{kernel}`: Acc parameter `{param.name}` in a kernel {what}", param.span,
                                        expected="a body of tile operations, which says what a task adds",
                                        help=f"declare `{param.name}` Out, on a scratch tensor, and add in a second kernel with Acc")
                   for param in params if isinstance(param.annotation, TileAnnotation | SizedTileAnnotation) and param.annotation.combine])


def own_parts(kernel: k.Kernel) -> k.Kernel:
    """Return the kernel that writes the part of one task: Acc parameters become Out, and hold all that the task adds.

    Elements that the body does not store add nothing: they are the neutral element of the combination.
    Raises: K106 for a parameter that is stored in a loop, or twice.
    """
    accumulating = tuple(param for param in kernel.params if isinstance(param, k.TileParam) and param.combine and not param.accumulates)
    if not accumulating:
        return kernel
    first: list[k.Stmt] = []
    number = 1 + max((value.id for stmt in walk(kernel.body) if (value := result_of(stmt)) is not None), default=-1)
    for param in accumulating:
        _stores(kernel.body, param)
        if not any(_is_whole(stmt, param) for stmt in kernel.body):
            first += _neutral_store(param, number + len(first))
    declared = tuple(replace(param, combine="") if isinstance(param, k.TileParam) and param in accumulating else param
                     for param in kernel.params)
    return replace(kernel, params=declared, body=(*first, *kernel.body))


def accumulator(name: str, params: Sequence[k.TileParam]) -> k.Kernel:
    """Return the kernel that combines a part with what a tensor holds, for each parameter: parts come first in its parameters.

    `params`: as declared, with their `combine`.
    """
    names = [param.name for param in params]
    parts: list[k.TileParam] = []
    for param in params:
        part = f"{param.name}_part"
        while part in names:
            part += "_"
        names.append(part)
        parts.append(k.TileParam(part, k.Role.IN, param.type, param.span))
    totals = [replace(param, role=k.Role.INOUT) for param in params]
    trace = KernelTrace(f"{name}_acc", names)
    with activate(trace):
        for part_param, total in zip(parts, totals, strict=True):
            combine = _OPS[total.combine]
            trace.store_whole(total, combine(TileParamRef(trace, total), TileParamRef(trace, part_param)))
    return k.Kernel(f"{name}_acc", (*parts, *totals), trace.body())


def neutral(combine: str, dtype: DType) -> int | float:
    """Return the neutral element of a combination, which changes no bit of the other operand: -0.0 for sums of floats."""
    lowest, highest = ((-np.inf, np.inf) if dtype.is_float else (int(np.iinfo(dtype.np).min), int(np.iinfo(dtype.np).max)))
    numbers = (-0.0 if dtype.is_float else 0, lowest, highest, 1.0 if dtype.is_float else 1)
    return dict(zip(k.COMBINES, numbers, strict=True))[combine]


def _stores(body: Sequence[k.Stmt], param: k.TileParam) -> tuple[Span, ...]:
    """Return the places of the stores to a parameter on the path through the body that has most of them.

    Raises: K106 for two on one path, and for a store in a loop.
    """
    places: tuple[Span, ...] = ()
    for stmt in body:
        match stmt:
            case k.Store(name) if name == param.name:
                places = (*places, stmt.span)
            case k.If():
                places = (*places, *max(_stores(stmt.then, param), _stores(stmt.other, param), key=len))
            case k.For():
                inside = _stores(stmt.body, param)
                if inside:
                    raise BufferMisuseError(f"Acc parameter `{param.name}` is stored in a loop", inside[0], expected="one store a task",
                                            found=f"a loop at {stmt.span.short}",
                                            help="sum up in a buffer, acc = pto.alloc(shape, dtype, init=0) and acc += value in the loop, "
                                                 "and store it once behind the loop")
            case _:
                pass
        if len(places) > 1:
            raise BufferMisuseError(f"Acc parameter `{param.name}` is stored twice", places[1], also=(("stored here", places[0]),),
                                    expected="one store a task, of all that it adds",
                                    help=f"combine the values first, and store once: pto.store({param.name}, a + b)")
    return places


def _is_whole(stmt: k.Stmt, param: k.TileParam) -> bool:
    """Tell whether a statement stores all of a parameter."""
    match stmt:
        case k.Store(name, value, valid_rows=None, valid_cols=None):
            return name == param.name and value.type == param.type
        case _:
            return False


def _neutral_store(param: k.TileParam, number: int) -> tuple[k.Stmt, k.Stmt]:
    """Return the statements that store the neutral element to all of a parameter. `number`: of a new value."""
    value = k.Value(number, param.type)
    operand = k.ScalarOperand(s.Const(neutral(param.combine, param.type.dtype)), param.type.dtype)
    attrs: tuple[tuple[str, k.Attr], ...] = (("shape", param.type.shape), ("dtype", param.type.dtype))
    return (k.Compute(value, expand.name, (operand,), attrs, param.span),
            k.Store(param.name, value, s.Const(0), s.Const(0), span=param.span))
