"""`Compiled`: what compiling a workload gives, or loading what was saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pto_wsp.arch.model import Arch
from pto_wsp.artifact.manifest import Manifest, PackageManifest
from pto_wsp.driver.options import CompileOptions
from pto_wsp.expr import workload as wl
from pto_wsp.plan.model import TaskPlan
from pto_wsp.runtime.native.run import Engine
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.values import dataclass
from pto_wsp.verify.verdict import Finding

if TYPE_CHECKING:
    from pto_wsp.runtime.interpreter.run import Interpreter


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """What compile() makes: the plan, what was found out about it, and what runs it (None: a package, which a device runs).

    `unscheduled`: the plan before its passes, which another schedule starts from.
    """

    workload: wl.Workload
    plan: TaskPlan
    unscheduled: TaskPlan
    target: str
    arch: Arch
    schedule: Schedule
    findings: tuple[Finding, ...]
    runner: Engine | Interpreter | None
    artifact_dir: Path | None
    manifest: Manifest | PackageManifest | None
    options: CompileOptions
    compile_time_ms: float
    from_cache: bool
