"""The pto target: kernels to `.pto` text, a file each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from pto_wsp.arch.model import Arch
from pto_wsp.errors import CompileOptionError
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.npu.emit.mlir import emit_pto
from pto_wsp.npu.emit.package import DeviceKernel
from pto_wsp.npu.plan.arguments import merge_dims, with_whole_reshapes
from pto_wsp.npu.plan.model import NpuPlan
from pto_wsp.source import here
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.options import CompileOptions
from pto_wsp.targets.package import DeviceTarget, lower_for_device, make_package, plan_package
from pto_wsp.targets.request import CompileRequest


class _Pto(DeviceTarget):
    __slots__ = ()

    def check_options(self, given: Mapping[str, object], checked: CompileOptions) -> None:
        """Refuse options of programs that run in this process, and of the launch of a package.

        Raises: C104.
        """
        super().check_options(given, checked)
        if checked.options.block_dim is not None:
            raise CompileOptionError("target pto has no block_dim", here(), found=repr(given["options"]),
                                     help="a .pto file is a kernel: what launches it is not in it; compile for ascend_npu")

    def compile(self, request: CompileRequest) -> Compiled:
        made = plan_package(request)
        return make_package(request, made, _without_own_bodies(made.plan), {}, partial(_files, request.arch))

    def lower(self, request: CompileRequest) -> None:
        lower_for_device(request, _without_own_bodies)


PTO = _Pto("pto")


def _without_own_bodies(plan: TaskPlan) -> TaskPlan:
    """Return the plan for a target that takes what kernels mean in Python: there is no C++ in a .pto file."""
    kernels = tuple(replace(use, kernel=replace(use.kernel, bodies=())) for use in plan.kernels)
    return merge_dims(with_whole_reshapes(replace(plan, kernels=kernels)))


def _files(arch: Arch, npu: NpuPlan, kernels: Sequence[DeviceKernel]) -> Mapping[str, str]:
    return {f"{kernel.name}.pto": emit_pto(kernel.program, arch) for kernel in kernels if kernel.program is not None}
