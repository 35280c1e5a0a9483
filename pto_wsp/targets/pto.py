"""The pto target: kernels to `.pto` text, a file each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from pto_wsp.arch.model import Arch
from pto_wsp.check.forms import form_errors
from pto_wsp.errors import raise_all
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.npu.emit.mlir import emit_pto
from pto_wsp.npu.emit.package import DeviceKernel
from pto_wsp.npu.plan.arguments import merge_dims
from pto_wsp.npu.plan.model import NpuPlan
from pto_wsp.passes.passes import DEVICE_PASSES
from pto_wsp.passes.pipeline import AnyPass
from pto_wsp.schedule.capability import supports
from pto_wsp.schedule.support import Support
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.options import CompileOptions
from pto_wsp.targets.package import check_device_arch, check_device_options, device_passes, lower_for_device, make_package
from pto_wsp.targets.planning import make_plan
from pto_wsp.targets.request import CompileRequest
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class _Pto:
    name: str = "pto"
    default_arch: str = "ascend_910b"

    @property
    def supports(self) -> Mapping[str, Support]:
        return supports(self.name)

    def check_options(self, given: Mapping[str, object], checked: CompileOptions) -> None:
        check_device_options(self.name, given)

    def check_arch(self, arch: Arch) -> None:
        check_device_arch(self.name, arch)

    def passes(self, options: CompileOptions) -> tuple[AnyPass, ...]:
        return device_passes()

    def compile(self, request: CompileRequest) -> Compiled:
        made = make_plan(request, DEVICE_PASSES)
        raise_all(form_errors(made.plan, self.name))
        return make_package(request, made, _without_own_bodies(made.plan), {}, partial(_files, request.arch))

    def lower(self, request: CompileRequest) -> None:
        lower_for_device(request, _without_own_bodies)


PTO = _Pto()


def _without_own_bodies(plan: TaskPlan) -> TaskPlan:
    """Return the plan for a target that takes what kernels mean in Python: there is no C++ in a .pto file."""
    return merge_dims(replace(plan, kernels=tuple(replace(use, kernel=replace(use.kernel, bodies=())) for use in plan.kernels)))


def _files(arch: Arch, npu: NpuPlan, kernels: Sequence[DeviceKernel]) -> Mapping[str, str]:
    return {f"{kernel.name}.pto": emit_pto(kernel.program, arch) for kernel in kernels if kernel.program is not None}
