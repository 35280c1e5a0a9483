"""`Compiled`: what compiling a workload gives, or loading what was saved, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pto_wsp.arch.model import Arch
from pto_wsp.artifact.manifest import Manifest, PackageManifest
from pto_wsp.check.verdict import Finding
from pto_wsp.errors import ProgramStateError
from pto_wsp.ir import workload as wl
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.run.native import Engine
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.targets.options import CompileOptions
from pto_wsp.values import ReadLater, dataclass

if TYPE_CHECKING:
    from pto_wsp.run.interpreter import Interpreter


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Compiled(ReadLater):
    """A workload compiled for a target: its plan, the findings of the checks, and the engine of the plan (None: a package for a device).

    The methods below return what a use of the program needs, or raise R103 with what is missing.

    `unscheduled`: the plan before its passes, from which another schedule starts; `passes`: the user's functions, by the names of the
    passes that they replace.
    """

    workload: wl.Workload
    plan: TaskPlan
    unscheduled: TaskPlan
    target: str
    arch: Arch
    schedule: Schedule
    options: CompileOptions
    findings: tuple[Finding, ...]
    runner: Engine | Interpreter | None = None
    artifact_dir: Path | None = None
    manifest: Manifest | PackageManifest | None = None
    compile_time_ms: float
    from_cache: bool = False
    passes: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    sent: np.ndarray[Any, Any] | None = None      # over MPI: the bytes that the last run sent from this rank to each rank

    def to_run(self) -> Engine | Interpreter:
        """Return what runs, and simulates, the plan in this process.

        Raises: R103 for a package.
        """
        if self.runner is None:
            raise ProgramStateError(f"a program for target {self.target} does not run in this process", here(),
                                    expected="target cpu_sim or interp", found=f"a package in {self.artifact_dir}",
                                    help="save(dir) copies it; a driver of the device runtime builds and runs it")
        return self.runner

    def to_verify(self) -> Engine:
        """Return what runs the artifact, whose results are compared with those of NumPy.

        Raises: R103 for a package, and for the NumPy meaning itself.
        """
        runner = self.to_run()
        if not isinstance(runner, Engine):
            raise ProgramStateError(f"a program for target {self.target} is the NumPy meaning itself", here(),
                                    expected="target cpu_sim, whose artifact is compared with it", help="compile(), then verify()")
        return runner

    def to_watch_the_clock(self) -> Engine:
        """Return what runs the artifact and keeps when tasks began and ended by the clock.

        Raises: R103 for what runs no artifact, or was compiled without wall_trace.
        """
        runner = self.to_run()
        if not isinstance(runner, Engine):
            raise ProgramStateError(f"target {self.target} has no wall-clock trace", here(), expected="target cpu_sim",
                                    help="trace has the simulated times of every target")
        if not self.options.wall_trace:
            raise ProgramStateError("the program does not look at the clock", here(), help="compile(wall_trace=True), then run it")
        return runner

    def to_save(self) -> tuple[Path, Manifest | PackageManifest]:
        """Return the folder of the artifact and its manifest.

        Raises: R103 where there is no artifact.
        """
        if self.artifact_dir is None or self.manifest is None:
            raise ProgramStateError(f"target {self.target} has no artifact to save", here(), help="compile for another target")
        return self.artifact_dir, self.manifest
