"""PTO-WSP: kernels, workloads and schedules for dynamic LLM work on accelerators, as three separate descriptions in plain Python."""

from typing import TYPE_CHECKING

from pto_wsp.api.kernels.kernel import Kernel, jit_kernel, kernel, ptoisa_kernel
from pto_wsp.api.kernels.pto_namespace import pto
from pto_wsp.api.workloads.forms import cond, for_each, parallel_for, select, task
from pto_wsp.api.workloads.tunable import Tunable
from pto_wsp.api.workloads.workload import Workload, WorkloadFunction, combine, sequential, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch
from pto_wsp.errors import PtoError
from pto_wsp.frontend.kernel.annotations import Constexpr, In, InOut, Out, Scalar
from pto_wsp.frontend.workload.loops import P
from pto_wsp.frontend.workload.slots import slot_load_u64, slot_set_u64, slot_u64
from pto_wsp.frontend.workload.trace import axis
from pto_wsp.schedule.calendar import Calendar
from pto_wsp.schedule.directives import (
    Deps,
    DispatchPolicy,
    Pools,
    ReadyPolicy,
    StartPolicy,
    TaskWindow,
    TimingPolicy,
    TracePolicy,
    WindowMode,
)
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.types.axes.dense import Dense, DenseDyn
from pto_wsp.types.axes.ragged import Ragged
from pto_wsp.types.axes.sparse import Sparse
from pto_wsp.types.contracts import Injective, Monotone
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar_functions import ceildiv, maximum, minimum
from pto_wsp.types.symbolic import Symbol
from pto_wsp.types.tensor import Tensor
from pto_wsp.types.tile import Tile

if TYPE_CHECKING:
    from pto_wsp.api.kernels.ptoisa_namespace import ptoisa
    from pto_wsp.api.programs.making import load
    from pto_wsp.api.programs.program import Program
    from pto_wsp.auto import auto_schedule
    from pto_wsp.csp import Channel, Event, Process, connect, consume, process, query, receive, record, replicate, send, synchronize
    from pto_wsp.plan.targets.capability import capabilities, workload_forms
    from pto_wsp.view.timeline import timeline

__version__ = "0.1.0"

__all__ = [
    "Arch", "Calendar", "Channel", "Constexpr", "DType", "Dense", "DenseDyn", "Deps", "DispatchPolicy", "Event", "In", "InOut",
    "Injective", "Kernel", "Monotone", "Out", "P", "Pools", "Process", "Program", "PtoError", "Ragged", "ReadyPolicy", "Scalar",
    "Schedule", "Sparse", "StartPolicy", "Symbol", "TaskWindow", "Tensor", "Tile", "TimingPolicy", "TracePolicy", "Tunable",
    "WindowMode", "Workload", "WorkloadFunction", "auto_schedule", "axis", "builtin_arch", "capabilities", "ceildiv", "combine", "cond",
    "connect", "consume", "for_each", "jit_kernel", "kernel", "load", "maximum", "minimum", "parallel_for", "process", "pto", "ptoisa",
    "ptoisa_kernel", "query", "receive", "record", "replicate", "select", "send", "sequential", "slot_load_u64", "slot_set_u64",
    "slot_u64", "synchronize", "task", "timeline", "workload", "workload_forms",
]


if not TYPE_CHECKING:    # a type checker would take any name for one of the module's
    def __getattr__(name: str) -> object:
        """Return what only some programs need, or none before its kernels and workloads are there: it is loaded when asked for."""
        match name:
            case ("Channel" | "Event" | "Process" | "connect" | "consume" | "process" | "query" | "receive" | "record" | "replicate"
                  | "send" | "synchronize"):
                import pto_wsp.csp as csp
                found = getattr(csp, name)
            case "ptoisa":
                from pto_wsp.api.kernels.ptoisa_namespace import ptoisa as found
            case "Program":
                from pto_wsp.api.programs.program import Program as found
            case "load":
                from pto_wsp.api.programs.making import load as found
            case "auto_schedule":
                from pto_wsp.auto import auto_schedule as found
            case "capabilities":
                from pto_wsp.plan.targets.capability import capabilities as found
            case "workload_forms":
                from pto_wsp.plan.targets.capability import workload_forms as found
            case "timeline":
                from pto_wsp.view.timeline import timeline as found
            case _:
                raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """Return all names, those that are not loaded yet too: what a notebook completes."""
    return sorted({*globals(), *__all__})
