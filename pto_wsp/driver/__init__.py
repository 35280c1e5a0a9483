"""compile(): the whole pipeline, a target a file.

workload + schedule → plan → passes → checks → what the target makes of it. Every stage is a function of values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pto_wsp.artifact.toolchain import cache_bytes
from pto_wsp.driver.checks import check_plan
from pto_wsp.driver.compiled import Compiled
from pto_wsp.driver.cpu_sim import compile_cpu_sim
from pto_wsp.driver.dumps import observer
from pto_wsp.driver.options import check_directives, check_strict, check_target, enforced_part, read_arch, read_options
from pto_wsp.errors import raise_all
from pto_wsp.expr import workload as wl
from pto_wsp.passes.pipeline import run_passes
from pto_wsp.plan.lowering.lower import lower
from pto_wsp.plan.model import Context
from pto_wsp.plan.passes import DEVICE_PASSES, PASSES
from pto_wsp.plan.targets.capability import DEVICE_TARGETS
from pto_wsp.plan.written.text import print_plan
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.verify.bodies import missing_bodies
from pto_wsp.verify.capacity import capacity_errors

if TYPE_CHECKING:
    from pto_wsp.driver.npu import PackageBuild


def compile_workload(workload: wl.Workload, schedule: Schedule, *, target: str, arch: object, strict: bool,
                     options: Mapping[str, object], arrays: Mapping[int, np.ndarray],
                     intermediates: frozenset[int] = frozenset()) -> Compiled:
    """Lower a workload (in canonical form) under a schedule and make of it what the target asks for.

    `arrays`: the data of tensors that the workload was written with, by the id of their TensorRef; `intermediates`: the ids of those
    that hold results between tasks.
    Raises: C104 for unknown options, S101 for directives that the target does not enforce, T301 for views outside their tensors,
    and whatever the stages raise.
    """
    started = time.perf_counter()
    check_target(target)
    check_strict(strict)
    checked, model = read_options(options, target), read_arch(arch, target)
    recorded = check_directives(schedule, target, strict=strict)
    dumps: dict[str, str] = {}
    context = Context(schedule, model, None if target != "cpu_sim" or checked.portable else cache_bytes(),
                      enforced_part(schedule, target), checked.overheads, intermediates)
    lowered = lower(workload)
    plan = run_passes(lowered, context, DEVICE_PASSES if target in DEVICE_TARGETS else PASSES,
                      observer(dumps, "", print_plan) if checked.dump else None)
    raise_all(missing_bodies((use.kernel for use in plan.kernels), target))
    findings = check_plan(lowered, plan, arrays, intermediates, model, exact=context.acting.deps.kind == "exact",
                          sanitize=checked.sanitize)
    if target in DEVICE_TARGETS:
        package = _compile_npu()(plan, schedule, model, target, findings, recorded, dumps, checked, arrays, intermediates)
        return Compiled(workload, plan, lowered, target, model, schedule, package.findings, None, package.root, package.manifest,
                        checked, _since(started), package.from_cache)
    raise_all(capacity_errors((use.kernel for use in plan.kernels), model))
    if target == "interp":
        from pto_wsp.runtime.interpreter.run import Interpreter  # its target alone needs it

        interpreter = Interpreter(plan, check_finite=checked.check_finite)
        return Compiled(workload, plan, lowered, target, model, schedule, findings, interpreter, None, None, checked, _since(started),
                        False)
    undefined = {k: arrays[slot.ref.id] for k, slot in enumerate(plan.tensors)
                 if slot.ref.id in intermediates and slot.ref.id in arrays and not slot.fresh}
    built = compile_cpu_sim(plan, schedule, model, findings, recorded, dumps, checked, undefined)
    return Compiled(workload, plan, lowered, target, model, schedule, findings, built.engine, built.root, built.manifest, checked,
                    _since(started), built.from_cache)


def _compile_npu() -> Callable[..., PackageBuild]:
    from pto_wsp.driver.npu import compile_npu  # loads selection and code generation for the device, which its targets alone need

    return compile_npu


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1e3
