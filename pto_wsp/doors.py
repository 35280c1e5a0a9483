"""Every module of the package that loads late, one function each: an import that a program needs only when it comes to that point.

`import pto_wsp` and a cached start load what they use, and nothing else. A function here is worth its place where the module behind it
costs milliseconds that most programs do not need; all other imports stand at the top of a file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any

    from pto_wsp.api.compiling import Lowered
    from pto_wsp.api.finished_run import FinishedRun
    from pto_wsp.api.kernel_alone import KernelAlone
    from pto_wsp.api.program import Program
    from pto_wsp.arch.model import Arch
    from pto_wsp.errors import PtoError
    from pto_wsp.ir import workload as wl
    from pto_wsp.ir.plan import TaskPlan
    from pto_wsp.ir.rewrite import Canonical
    from pto_wsp.ir.tensor import Tensor
    from pto_wsp.run.bound import Bindings
    from pto_wsp.run.native import Engine
    from pto_wsp.run.record import RecordColumns
    from pto_wsp.run.sanitize import Watch
    from pto_wsp.run.simulator import Recorder
    from pto_wsp.run.task_list import TaskList
    from pto_wsp.run.verify import Verification

_PIPELINES = ("Channel", "Event", "Process", "Ring", "connect", "consume", "process", "produce", "query", "receive", "record", "replicate",
              "send", "synchronize")
_COLLECTIVES = ("all_to_all", "allgather", "allreduce", "broadcast", "halo", "reduce_scatter", "relayout")
# Names of `pto_wsp` that no program needs before its kernels and workloads are written, by the module that defines them.
LATE_NAMES = {
    **dict.fromkeys(_PIPELINES, "pto_wsp.csp"), "KernelBuilder": "pto_wsp.api.builder",
    **dict.fromkeys(_COLLECTIVES, "pto_wsp.trace.workload.collectives"), "copy": "pto_wsp.trace.workload.moves",
    "Package": "pto_wsp.artifact.contents", "TilePlan": "pto_wsp.schedule.tiling", "Program": "pto_wsp.api.program",
    "auto_schedule": "pto_wsp.api.search", "capabilities": "pto_wsp.schedule.capability", "compare": "pto_wsp.api.compare",
    "explore": "pto_wsp.api.explore", "jit": "pto_wsp.api.jit",
    "load": "pto_wsp.api.compiling", "parse": "pto_wsp.api.parse", "ptoisa": "pto_wsp.api.ptoisa", "timeline": "pto_wsp.view.timeline",
    "workload_forms": "pto_wsp.schedule.capability",
}


# The targets: the module of each, and its name there. A target loads without the others.
TARGETS = {
    "cpu_sim": ("pto_wsp.targets.cpu_sim", "CPU_SIM"),
    "interp": ("pto_wsp.targets.interp", "INTERP"),
    "ascend_npu": ("pto_wsp.targets.ascend_npu", "ASCEND_NPU"),
    "pto": ("pto_wsp.targets.pto", "PTO"),
}
# Further names of targets: the target, and the options that the name stands for.
TARGET_ALIASES = {
    "pto_runtime_host_build_graph": ("ascend_npu", {"runtime": "host_build_graph"}),
    "pto_runtime_tensormap_and_ringbuffer": ("ascend_npu", {"runtime": "tensormap_and_ringbuffer"}),
}
# Modules of the targets, of commands, and what a program from the cache does without: it builds nothing.
LATE_MODULES = frozenset({module for module, _ in TARGETS.values()} | {f"pto_wsp.{name}" for name in (
    "api.advise", "api.compare", "api.over_mpi", "api.program", "api.tensors.lowering", "api.tensors.meanings", "api.plan_search",
    "api.tensors.torch_op", "artifact.build", "artifact.contents", "artifact.manifest", "cli.cache", "cli.demo", "cli.doctor",
    "cli.packages", "cli.programs", "cli.runs", "cli.schedules", "ir.print_ir", "ir.tensor_function_text", "passes.kernel.check_finite",
    "passes.tensor.passes", "run.pass_check", "targets.cpu_sim_build", "targets.load", "targets.save", "targets.table",
    "trace.kernel_data", "view.card", "view.compare_cards", "view.html", "view.kernel_cards", "view.notebook", "view.pass_cards",
    "view.program_cards", "view.run_page", "view.text", "view.workload_cards")})


def late_name(name: str) -> object:
    """Return a name of `LATE_NAMES`."""
    return getattr(import_module(LATE_NAMES[name]), name)


def late_module(name: str) -> ModuleType:
    """Return a module of `LATE_MODULES`."""
    assert name in LATE_MODULES, name
    return import_module(name)


class Displayed:
    """Base of values that a notebook shows as a card: IPython calls `_repr_mimebundle_`."""

    __slots__ = ()

    @property
    def card(self) -> Any:
        """All that a notebook shows of the value, as data; None for a value that has only text."""
        return late_module("pto_wsp.view.notebook").card_of(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return the value as text and, where a card can be made of what is there, as HTML."""
        bundle: dict[str, str] = late_module("pto_wsp.view.notebook").mimebundle(self._text, lambda: self.card)
        return bundle

    def _text(self) -> str:
        return str(self)


class DisplayedText(str, Displayed):
    """Text that shows itself: at a prompt and in a notebook its lines, not a quoted string."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def program_makers() -> tuple[Callable[..., Program], Callable[..., Lowered]]:
    """Return `compile_program` and `lower_program`: they load the compiler and everything that runs."""
    from pto_wsp.api.compiling import compile_program, lower_program

    return compile_program, lower_program


def kernel_alone() -> type[KernelAlone]:
    """Return what runs and prices a kernel without a workload: the interpreter, costs, checks of memory."""
    from pto_wsp.api.kernel_alone import KernelAlone

    return KernelAlone


def finished_run() -> type[FinishedRun]:
    """Return what shows a finished run: figures, traces, other schedules."""
    from pto_wsp.api.finished_run import FinishedRun

    return FinishedRun


def tasks_of(canonical: Canonical, tensors: Mapping[int, Tensor], sizes: Mapping[str, object]) -> TaskList:
    """List the tasks of a workload that is not compiled: `api.task_list.tasks_of`."""
    from pto_wsp.api.task_list import tasks_of

    return tasks_of(canonical, tensors, sizes)


def check_workload(workload: wl.Workload, *, bodies: bool) -> None:
    """Check a workload that comes from data, which is traced again: `trace.workload_data.check_workload`."""
    from pto_wsp.trace.workload_data import check_workload

    check_workload(workload, bodies=bodies)


def verify_artifact(engine: Engine, bindings: Bindings, rtol: object, atol: object, *, check_finite: bool) -> Verification:
    """Hold an artifact against the interpreter, with tolerances as a user gives them: `run.verify.verify_artifact`."""
    from pto_wsp.run.verify import read_tolerance, verify_artifact

    return verify_artifact(engine, bindings, read_tolerance(rtol, atol), check_finite=check_finite)


def check_recorded(plan: TaskPlan, recorder: Recorder, bindings: Bindings) -> None:
    """Check a schedule's calendar, and buffers of links, against the tasks of a run: `timing.calendar_check.check_recorded`."""
    from pto_wsp.timing.calendar_check import check_recorded

    check_recorded(plan, recorder, bindings)


def watch() -> type[Watch]:
    """Return the class that records the accesses of a sanitized run, beside the run's record of tasks."""
    from pto_wsp.run.sanitize import Watch

    return Watch


def native_error(plan: TaskPlan, columns: RecordColumns, result: Any) -> PtoError:
    """Return the error of a native run whose task failed at a guard or at a check of floats: `run.finite.native_error`."""
    from pto_wsp.run.finite import native_error

    return native_error(plan, columns, result)


def host_cpu() -> Arch:
    """Return the model of this machine, which reads files of the system."""
    from pto_wsp.arch.host import host_cpu

    return host_cpu()
