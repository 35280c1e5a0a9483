"""The interp target: NumPy runs the plan, as the oracle of all others."""

from __future__ import annotations

from collections.abc import Mapping

from pto_wsp.arch.model import Arch
from pto_wsp.check.capacity import capacity_errors
from pto_wsp.errors import CompileOptionError, raise_all
from pto_wsp.passes.lower import lower
from pto_wsp.passes.passes import PASSES
from pto_wsp.passes.pipeline import AnyPass
from pto_wsp.run.interpreter import Interpreter
from pto_wsp.schedule.capability import supports
from pto_wsp.schedule.support import Support
from pto_wsp.source import here
from pto_wsp.targets.compiled import Compiled
from pto_wsp.targets.options import CompileOptions, refuse_npu_options
from pto_wsp.targets.planning import make_plan, run_plan_passes
from pto_wsp.targets.request import CompileRequest
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class _Interp:
    name: str = "interp"
    default_arch: str = "unit"

    @property
    def supports(self) -> Mapping[str, Support]:
        return supports(self.name)

    def check_options(self, given: Mapping[str, object], checked: CompileOptions) -> None:
        if checked.sanitize:
            raise CompileOptionError("target interp has no sanitize", here(),
                                     help="interp runs tasks in program order, one by one; compile for cpu_sim to look for races")
        if checked != CompileOptions(check_finite=checked.check_finite, overheads=checked.overheads):
            refused = ", ".join(name for name in given if name not in ("check_finite", "overheads"))
            raise CompileOptionError(f"target interp has no {refused}", here(), help="these options are for targets that generate code")
        refuse_npu_options(self.name, given, checked)

    def check_arch(self, arch: Arch) -> None:
        """Take any."""

    def passes(self, options: CompileOptions) -> tuple[AnyPass, ...]:
        return PASSES

    def compile(self, request: CompileRequest) -> Compiled:
        made = make_plan(request, PASSES)
        raise_all(capacity_errors((use.kernel for use in made.plan.kernels), request.arch))
        interpreter = Interpreter(made.plan, check_finite=request.options.check_finite)
        return request.compiled(plan=made.plan, unscheduled=made.lowered, findings=made.findings, runner=interpreter)

    def lower(self, request: CompileRequest) -> None:
        run_plan_passes(request, lower(request.workload), PASSES, None)


INTERP = _Interp()
