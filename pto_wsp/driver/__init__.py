"""compile(): the whole pipeline, a target a file.

workload + schedule → plan → passes → checks → what the target makes of it. Every stage is a function of values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pto_wsp.arch.model import Arch
from pto_wsp.artifact.manifest import Manifest
from pto_wsp.artifact.toolchain import cache_bytes
from pto_wsp.driver.cpu_sim import compile_cpu_sim
from pto_wsp.driver.options import check_directives, check_strict, check_target, read_arch, read_options
from pto_wsp.errors import raise_all
from pto_wsp.expr import workload as wl
from pto_wsp.plan.lower import lower
from pto_wsp.plan.model import Context, TaskPlan
from pto_wsp.plan.passes import run_passes
from pto_wsp.plan.text import print_plan
from pto_wsp.runtime.interp import Interpreter
from pto_wsp.runtime.native import Engine
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.values import dataclass
from pto_wsp.verify.bodies import missing_bodies
from pto_wsp.verify.bounds import check_bounds
from pto_wsp.verify.capacity import capacity_errors
from pto_wsp.verify.verdict import Finding


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """What compile() makes: the plan, what was found out about it, and what runs it."""

    plan: TaskPlan
    target: str
    arch: Arch
    schedule: Schedule
    findings: tuple[Finding, ...]
    runner: Engine | Interpreter
    artifact_dir: Path | None
    manifest: Manifest | None
    compile_time_ms: float
    from_cache: bool


def compile_workload(workload: wl.Workload, schedule: Schedule, *, target: str, arch: object, strict: bool,
                     options: Mapping[str, object]) -> Compiled:
    """Lower a workload (in canonical form) under a schedule and make of it what the target asks for.

    Raises: C104 for unknown options, S101 for directives that the target does not enforce, T301 for views outside their tensors,
    and whatever the stages raise.
    """
    started = time.perf_counter()
    check_target(target)
    check_strict(strict)
    checked, model = read_options(options, target), read_arch(arch)
    recorded = check_directives(schedule, target, strict=strict)
    dumps: dict[str, str] = {}
    context = Context(schedule, model, None if target != "cpu_sim" or checked.portable else cache_bytes())
    plan = run_passes(lower(workload), context, observe=_dumper(dumps) if checked.dump else None)
    raise_all(missing_bodies((use.kernel for use in plan.kernels), target))
    findings = check_bounds(plan)
    raise_all([finding.error for finding in findings if finding.error is not None])
    raise_all(capacity_errors((use.kernel for use in plan.kernels), model))
    if target == "interp":
        interpreter = Interpreter(plan, check_finite=checked.check_finite)
        return Compiled(plan, target, model, schedule, findings, interpreter, None, None, _since(started), False)
    built = compile_cpu_sim(plan, schedule, model, findings, recorded, dumps, checked)
    return Compiled(plan, target, model, schedule, findings, built.engine, built.root, built.manifest, _since(started), built.from_cache)


def _dumper(dumps: dict[str, str]) -> Callable[[str, TaskPlan, TaskPlan], None]:
    def observe(name: str, before: TaskPlan, after: TaskPlan) -> None:
        number = len(dumps) // 2
        dumps[f"ir/{number:02}_before_{name}.wsp"] = print_plan(before)
        dumps[f"ir/{number:02}_after_{name}.wsp"] = print_plan(after)
    return observe


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1e3
