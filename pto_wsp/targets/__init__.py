"""compile() and lower(): what was asked, checked, and given to the target. A file of this folder is a target."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from pto_wsp import doors
from pto_wsp.errors import MeshError
from pto_wsp.ir import workload as wl
from pto_wsp.ir.mesh import Mesh
from pto_wsp.passes.pipeline import PassRun, Reached
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.options import check_directives, check_strict, enforced_part, read_arch, read_options
from pto_wsp.targets.replacing import blaming, find_step, make_runner
from pto_wsp.targets.request import CompileRequest, Target
from pto_wsp.targets.table import find_target, resolve_alias
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Asked:
    """What a user asks of compile() or lower(), not checked yet. `workload`: in canonical form; the rest as in `CompileRequest`."""

    workload: wl.Workload
    schedule: Schedule
    target: object
    arch: object
    strict: object
    passes: object
    options: Mapping[str, object]
    arrays: Mapping[int, np.ndarray]
    intermediates: frozenset[int] = frozenset()
    unsized: frozenset[int] = frozenset()
    texts: Mapping[str, str] = field(default_factory=dict)


def compile_workload(asked: Asked) -> Compiled:
    """Return what the target makes of a workload.

    Raises: C104 for unknown options, C115 for an arch, C113 and C114 for passes of the user's own, S101 for directives that the target
    does not enforce, T301 for views outside their tensors, and whatever the stages raise.
    """
    started = time.perf_counter()
    asked = _without_alias(asked)
    target = find_target(asked.target)
    request = _request(asked, target, started)
    with blaming(request.runner):
        return target.compile(request)


def lower_workload(asked: Asked, until: object) -> tuple[str, tuple[Reached, ...], tuple[PassRun, ...]]:
    """Return the name of a pass, what it gives of a workload (one IR for each plan, kernel or tile program), and each pass that ran.

    until: None for the last pass.

    Raises: C114 for a name that no pass of the target has; what compiling raises up to there.
    """
    started = time.perf_counter()
    asked = _without_alias(asked)
    target = find_target(asked.target)
    steps = target.passes(read_options(asked.options))
    name = None if until is None else find_step(target.name, steps, until).name
    request = _request(asked, target, started, name)
    if name is None:
        name = request.runner.until = next(step.name for step in reversed(steps) if step.name not in request.runner.left_out)
    if request.options.verify_passes:
        request.runner.compare = doors.late_module("pto_wsp.run.pass_check").difference_of
    with blaming(request.runner):
        target.lower(request)
    return name, tuple(request.runner.reached), tuple(request.runner.ran)


def _without_alias(asked: Asked) -> Asked:
    """Return what was asked of a further name of a target as asked of the target itself."""
    target, options = resolve_alias(asked.target, asked.options)
    return replace(asked, target=target, options=options)


def _request(asked: Asked, target: Target, started: float, until: str | None = None) -> CompileRequest:
    check_strict(asked.strict)
    options = read_options(asked.options)
    target.check_options(asked.options, options)
    if target.name not in ("cpu_sim", "interp"):
        _refuse_mesh(asked.workload, target.name)
    arch = read_arch(asked.arch, target.default_arch)
    target.check_arch(arch)
    runner = make_runner(target.name, target.passes(options), asked.passes, until)
    recorded = check_directives(asked.schedule, target.name, strict=bool(asked.strict))
    return CompileRequest(target=target.name, workload=asked.workload, schedule=asked.schedule,
                          enforced=enforced_part(asked.schedule, target.name), recorded=recorded, arch=arch, options=options,
                          arrays=asked.arrays, intermediates=asked.intermediates, unsized=asked.unsized, runner=runner,
                          texts=asked.texts, dumps=dict(asked.texts), started=started)


def _refuse_mesh(workload: wl.Workload, target: str) -> None:
    """Refuse a workload over ranks for a target that compiles for one chip.

    Raises: M102.
    """
    task = next((task for task in wl.tasks(workload.body) if task.on is not None), None)
    if task is not None and task.on is not None:
        raise MeshError(f"target {target} does not take a mesh", task.span, found=repr(Mesh.of(task.on.mesh)), expected="cpu_sim or interp",
                        help="run it with cpu_sim, over MPI with compile(comm=...); or compile what one rank does by itself",
                        notes=("a package is for one chip: what is known of the runtime gives no store into another chip's memory",))
