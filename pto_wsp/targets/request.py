"""`CompileRequest`: everything that a target is asked with, checked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pto_wsp.arch.model import Arch
from pto_wsp.artifact.manifest import Manifest, PackageManifest
from pto_wsp.check.verdict import Finding
from pto_wsp.ir import workload as wl
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.passes.pipeline import AnyPass, Runner
from pto_wsp.run.native import Engine
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.schedule.support import Support
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.options import CompileOptions
from pto_wsp.values import dataclass

if TYPE_CHECKING:
    from pto_wsp.run.interpreter import Interpreter


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CompileRequest:
    """A request to compile: a workload in canonical form, its schedule, and the checked options of compile().

    `enforced`: the part of the schedule that the target enforces; `recorded`: the directives that it does not enforce; `arrays`: the data
    of tensors that the workload was written with, by the id of their TensorRef; `intermediates`: the ids of tensors that hold results
    between tasks; `unsized`: the ids of tensors whose shape is known only in a run; `runner`: runs all passes; `texts`: the levels above,
    by file, for dump=True; `dumps`: these and the texts of passes; `started`: the time when compile() began, in seconds.
    """

    target: str
    workload: wl.Workload
    schedule: Schedule
    enforced: Schedule
    recorded: tuple[str, ...]
    arch: Arch
    options: CompileOptions
    arrays: Mapping[int, np.ndarray]
    intermediates: frozenset[int]
    unsized: frozenset[int]
    runner: Runner
    texts: Mapping[str, str] = field(default_factory=dict)
    dumps: dict[str, str] = field(default_factory=dict)
    started: float

    def compiled(self, *, plan: TaskPlan, unscheduled: TaskPlan, findings: tuple[Finding, ...], runner: Engine | Interpreter | None = None,
                 artifact_dir: Path | None = None, manifest: Manifest | PackageManifest | None = None,
                 from_cache: bool = False) -> Compiled:
        """Return what the target made of the request."""
        return Compiled(workload=self.workload, plan=plan, unscheduled=unscheduled, target=self.target, arch=self.arch,
                        schedule=self.schedule, options=self.options, findings=findings, runner=runner, artifact_dir=artifact_dir,
                        manifest=manifest, compile_time_ms=(time.perf_counter() - self.started) * 1e3, from_cache=from_cache,
                        passes=self.runner.replaced)


class Target(Protocol):
    """What compile() compiles for. A file of this folder each; `table.py` knows the names."""

    @property
    def name(self) -> str:
        """The name, as compile(target=...) takes it."""

    @property
    def supports(self) -> Mapping[str, Support]:
        """What the target makes of each directive, and why."""

    @property
    def default_arch(self) -> str:
        """The name of the arch of a program that names none."""

    def check_options(self, given: Mapping[str, object], checked: CompileOptions) -> None:
        """Refuse the options that the target has no use for. `given`: as the user wrote them.

        Raises: C104.
        """

    def check_arch(self, arch: Arch) -> None:
        """Refuse an arch that the target does not compile for.

        Raises: C104.
        """

    def passes(self, options: CompileOptions) -> tuple[AnyPass, ...]:
        """Return all passes, of all levels, in the order of their run."""

    def compile(self, request: CompileRequest) -> Compiled:
        """Return the workload compiled.

        Raises: what is wrong with the workload, at the user's line.
        """

    def lower(self, request: CompileRequest) -> None:
        """Run the passes up to the one that the runner of the request stops at. Nothing is generated, and no race looked for."""


