"""Plans for the NPU run by NumPy, one launch after the other: descriptors as windows of arrays, kernels by the interpreter.

Memory that the runtime would allocate is full of what no kernel should ever read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from pto_wsp.api.workload import Workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.ir import scalar as s
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.flow import Do, Loop, Sequence, Sides
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.npu.isa.tile_program import ParamAccess
from pto_wsp.npu.plan.arguments import merge_dims, with_whole_reshapes
from pto_wsp.npu.plan.model import Descriptor, Launch, NpuItem, NpuKernel, NpuPlan, Passed, Reshaped, Scope, Window
from pto_wsp.npu.plan.plan_for_npu import plan_for_npu
from pto_wsp.ops.rounding import Array
from pto_wsp.passes.context import Context
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import PASSES
from pto_wsp.passes.pipeline import run_passes
from pto_wsp.run.kernel_interpreter import run_kernel

RunKernel: TypeAlias = Callable[[NpuKernel, Mapping[str, Array | s.Number]], None]


def npu_plan(workload: Workload) -> NpuPlan:
    """Return the plan of a workload for the NPU."""
    arch = builtin_arch("ascend_910b")
    plan = run_passes(lower(workload.node), Context(workload.schedule, arch, None), PASSES)
    return plan_for_npu(merge_dims(with_whole_reshapes(plan)), arch)


def untouched(shape: tuple[int, ...], dtype: DType) -> Array:
    """Return memory that nothing was written to: NaN, or a number that gives itself away."""
    return np.full(shape, np.nan if dtype.is_float else 99, dtype.np)


def interpret(use: NpuKernel, args: Mapping[str, Array | s.Number]) -> None:
    """Run a kernel as the interpreter does."""
    assert run_kernel(use.kernel, args) is None


def run_npu_plan(plan: NpuPlan, arrays: Mapping[str, Array], run: RunKernel = interpret) -> None:
    """Run a plan on contiguous arrays by the name of the tensor, each kernel by `run`."""
    _Run(plan, tuple(arrays[slot.ref.shown] for slot in plan.tensors), run).item(plan.body)


@dataclass
class _Run:
    plan: NpuPlan
    tensors: tuple[Array, ...]
    run: RunKernel
    variables: dict[s.Var, int] = field(default_factory=dict)
    inner: dict[int, Array] = field(default_factory=dict)

    def item(self, item: NpuItem) -> None:
        match item:
            case Loop(var, start, stop, step, _, body):
                for index in range(self.whole(start), self.whole(stop), self.whole(step)):
                    self.variables[var] = index
                    self.item(body)
            case Scope(parts, intermediates):
                for made in intermediates:
                    rows, cols = (self.whole(extent) for extent in made.shape)
                    self.inner[made.id] = untouched((rows, cols), made.dtype)
                for part in parts:
                    self.item(part)
            case Sequence(parts) | Sides(parts):
                for part in parts:
                    self.item(part)
            case Do(launch):
                for check in launch.note.checks:
                    assert self.whole(check.lower) <= self.whole(check.value) <= self.whole(check.upper), check
                self.launch(launch)

    def launch(self, launch: Launch) -> None:
        kernel = self.plan.kernels[launch.kernel]
        args: dict[str, Array | s.Number] = {}
        for param, argument, access in zip(kernel.kernel.memory_params, launch.arguments, kernel.access, strict=True):
            assert param.role is argument.role
            args[param.name] = self.seen(argument, access)
        for scalar, value in zip(kernel.kernel.scalar_params, launch.scalars, strict=True):
            assert scalar.dtype is value.dtype
            args[scalar.name] = s.evaluate(value.value, self.leaf)
        self.run(kernel, args)

    def seen(self, argument: Descriptor | Passed, access: ParamAccess) -> Array:
        """Return the rows and columns that a kernel finds in what it is given."""
        array = self.inner[argument.intermediate] if isinstance(argument, Passed) else self.tensors[argument.slot]
        for step in argument.steps if isinstance(argument, Descriptor) else ():
            match step:
                case Window(offset, shape):
                    where = [(self.whole(at), self.whole(extent)) for at, extent in zip(offset, shape, strict=True)]
                    assert all(at >= 0 and n >= 0 and at + n <= most for (at, n), most in zip(where, array.shape, strict=True)), where
                    array = array[tuple(slice(at, at + n) for at, n in where)]
                case Reshaped(shape):
                    seen = array.reshape(shape)
                    assert np.shares_memory(seen, array) or not array.size
                    array = seen
        by = {access.row_dim: access.row_step, access.col_dim: access.col_step}
        array = array[tuple(slice(None, None, by.get(dim, 1)) for dim in range(array.ndim))]
        order = [dim for dim in (access.row_dim, access.col_dim) if dim is not None]
        rest = [dim for dim in range(array.ndim) if dim not in order]
        array = array.transpose(*rest, *order)
        assert all(extent == 1 for extent in array.shape[:len(rest)]), "more than rows and columns"
        array = array[(0,) * len(rest)]
        array = array[None] if array.ndim == 1 else array
        known = access.rows, access.cols
        assert all(extent in (None, found) for extent, found in zip(known, array.shape, strict=True)), (access, array.shape)
        rows, cols = (stride // array.itemsize for stride in array.strides)
        assert not access.unit_cols or cols == 1 or array.shape[1] <= 1
        assert not access.unit_rows or rows == 1 or array.shape[0] <= 1
        return array

    def whole(self, node: s.Scalar) -> int:
        return int(s.evaluate(node, self.leaf))

    def leaf(self, node: s.Scalar) -> s.Number:
        slots = {slot.ref.id: array for slot, array in zip(self.plan.tensors, self.tensors, strict=True)}
        match node:
            case s.Var():
                return self.variables[node]
            case s.DimOf(tensor, dim):
                return int(slots[tensor.id].shape[dim])
            case s.StrideOf(tensor, dim):
                return int(slots[tensor.id].strides[dim] // slots[tensor.id].itemsize)
            case s.Element(tensor, index):
                return slots[tensor.id][tuple(self.whole(i) for i in index)].item()
            case s.SymbolRef(default=default) if default is not None:
                return default
            case _:
                raise AssertionError(f"unknown scalar {print_scalar(node)}")
