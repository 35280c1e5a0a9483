"""The ascend_npu target: a plan to a package that the device runtime builds and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from pto_wsp.errors import MissingDataError, raise_all
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.npu.emit.golden import deciding_tensors, emit_golden, steering_tensors
from pto_wsp.npu.emit.launch import launch_of
from pto_wsp.npu.emit.orchestration import emit_orchestration, orchestration_path
from pto_wsp.npu.emit.package import DeviceKernel, emit_package_files
from pto_wsp.npu.plan.arguments import mark_between_tasks, merge_dims, with_whole_reshapes
from pto_wsp.npu.plan.model import NpuPlan
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.package import INTERFACES, DeviceTarget, lower_for_device, make_package, plan_package
from pto_wsp.targets.request import CompileRequest


class _AscendNpu(DeviceTarget):
    __slots__ = ()

    def compile(self, request: CompileRequest) -> Compiled:
        made = plan_package(request)
        plan = _for_device(request, made.plan)
        steering = _steering(plan, request.arrays)
        return make_package(request, made, plan, steering, partial(_files, request, plan, steering))

    def lower(self, request: CompileRequest) -> None:
        lower_for_device(request, partial(_for_device, request))


ASCEND_NPU = _AscendNpu("ascend_npu")


def _for_device(request: CompileRequest, plan: TaskPlan) -> TaskPlan:
    return merge_dims(mark_between_tasks(with_whole_reshapes(plan), request.intermediates))


def _files(request: CompileRequest, plan: TaskPlan, steering: Mapping[int, np.ndarray], npu: NpuPlan,
           kernels: Sequence[DeviceKernel]) -> Mapping[str, str]:
    options = request.options.options
    runtime, launch = options.runtime, launch_of(request.schedule, request.arch, options.block_dim)
    return {
        **emit_package_files(npu, kernels, arch=request.arch.name, runtime=runtime, launch=launch, interfaces=INTERFACES),
        orchestration_path(npu): emit_orchestration(npu, runtime),
        "golden.py": emit_golden(plan, steering, {symbol.id: symbol.default for symbol in plan.symbols if symbol.default is not None}),
    }


def _steering(plan: TaskPlan, arrays: Mapping[int, np.ndarray]) -> Mapping[int, np.ndarray]:
    """Return the elements of the tensors that decide which tasks there are, or which elements they reach.

    Raises: C109 for one that was made without data.
    """
    known = steering_tensors(plan) | (deciding_tensors(plan) & arrays.keys())
    wanted = [slot.ref for slot in plan.tensors if slot.ref.id in known]
    raise_all([MissingDataError(f"`{ref.shown}` has no data, and golden.py needs its elements: they decide what tasks do", None,
                                expected="Tensor(array) for lengths, offsets and indices") for ref in wanted if ref.id not in arrays])
    return {ref.id: arrays[ref.id].reshape(ref.shape) for ref in wanted}
