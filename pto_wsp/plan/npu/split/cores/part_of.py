"""A body as a part for one core: with the parameters that it needs, in their roles there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import walk
from pto_wsp.expr.rewrite import rewrite
from pto_wsp.expr.tile_program import ParamAccess
from pto_wsp.ops.entry import Unit
from pto_wsp.plan.npu.split.circles.unrolled import folded
from pto_wsp.plan.npu.split.cores.parts import Given, Part
from pto_wsp.types import scalar as s
from pto_wsp.types.dtype import DType


def part_of(kernel: k.Kernel, core: Unit, access: Mapping[str, ParamAccess], places: Mapping[str, str]) -> Part:
    """Return a kernel's body as a part. `access`: of its memory parameters; `places`: what those that bear another name are given.

    An extent that is the same for every task becomes a number; one of a parameter that the body does not touch is that of another
    which is the same, or is handed to it.
    """
    loaded = {stmt.param for stmt in walk(kernel.body) if isinstance(stmt, k.Load | k.Gather)}
    stored = {stmt.param for stmt in walk(kernel.body) if isinstance(stmt, k.Store | k.Scatter)}
    added = {stmt.param for stmt in walk(kernel.body) if isinstance(stmt, k.Scatter) and stmt.add}
    declared = {param.name: param for param in kernel.scalar_params}
    given: dict[str, Given] = {}

    def settle(node: object) -> object | None:
        match node:
            case s.ParamScalar(name):
                given[name] = node
                return None
            case s.ParamExtent(name, dim):
                fixed = (access[name].rows, access[name].cols)[dim]
                if fixed is not None:
                    return s.Const(fixed)
                same = _same(node, access, loaded | stored)
                if name in loaded | stored or same is not None:
                    return None if name in loaded | stored else same
                handed = _free(f"{name}_{('rows', 'cols')[dim]}", kernel)
                given[handed] = node
                return s.ParamScalar(handed, DType.I64)
            case _:
                return folded(node)

    body = rewrite(kernel.body, settle)
    memory = tuple(replace(param, role=_role(param, loaded, stored, added)) for param in kernel.memory_params
                   if param.name in loaded | stored)
    names = [name for name in declared if name in given] + [name for name in given if name not in declared]
    scalars = tuple(declared.get(name) or k.ScalarParamDecl(name, DType.I64) for name in names)
    return Part(replace(kernel, params=(*memory, *scalars), body=body), core, tuple(access[param.name] for param in memory),
                tuple(places.get(param.name, param.name) for param in memory), tuple(given[name] for name in names))


def _same(extent: s.ParamExtent, access: Mapping[str, ParamAccess], here: set[str]) -> s.ParamExtent | None:
    """Return an extent of one of these parameters that is the same in every task."""
    groups = {name: (one.row_group, one.col_group)[extent.dim] for name, one in access.items()}
    group = groups[extent.name]
    alike = (s.ParamExtent(name, extent.dim) for name in groups if name in here and groups[name] == group)
    return None if group is None else next(alike, None)


def _role(param: k.MemoryParam, loaded: set[str], stored: set[str], added: set[str]) -> k.Role:
    if param.name not in stored:
        return k.Role.IN
    return param.role if param.role is k.Role.INOUT or param.name not in loaded | added else k.Role.INOUT


def _free(name: str, kernel: k.Kernel) -> str:
    """Return the name, longer where a parameter of the kernel has it."""
    taken = {param.name for param in kernel.params}
    while name in taken:
        name += "_"
    return name
