"""PTO-WSP: kernels, workloads and schedules for dynamic LLM work on accelerators, as three separate descriptions in plain Python."""

from typing import TYPE_CHECKING

from pto_wsp import doors
from pto_wsp.api.forms import cond, for_each, parallel_for, select, task
from pto_wsp.api.kernel import Kernel, jit_kernel, kernel, ptoisa_kernel
from pto_wsp.api.pto import pto
from pto_wsp.api.workload import Workload, WorkloadFunction, combine, sequential, workload
from pto_wsp.arch.instances import builtin_arch
from pto_wsp.arch.model import Arch
from pto_wsp.errors import PtoError
from pto_wsp.ir.axes import Dense, DenseDyn, Ragged, Sparse
from pto_wsp.ir.dtype import DType
from pto_wsp.ir.mesh import Mesh
from pto_wsp.ir.symbolic import Symbol, ceildiv, maximum, minimum
from pto_wsp.ir.tensor_layout import Partial, Replicate, Shard, TensorLayout
from pto_wsp.ir.tile import Tile
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
from pto_wsp.trace.kernel.annotations import Acc, Constexpr, In, InOut, Out, Scalar
from pto_wsp.trace.workload.loops import P, slot_load_u64, slot_set_u64, slot_u64
from pto_wsp.trace.workload.trace import axis

if TYPE_CHECKING:
    from pto_wsp.api.builder import KernelBuilder
    from pto_wsp.api.checked_types import CheckedTensor as Tensor
    from pto_wsp.api.checked_types import Injective, Monotone, Tunable
    from pto_wsp.api.compare import compare
    from pto_wsp.api.compiling import load
    from pto_wsp.api.explore import explore
    from pto_wsp.api.jit import jit
    from pto_wsp.api.parse import parse
    from pto_wsp.api.program import Program
    from pto_wsp.api.ptoisa import ptoisa
    from pto_wsp.api.search import auto_schedule
    from pto_wsp.artifact.contents import Package
    from pto_wsp.csp import (
        Channel,
        Event,
        Process,
        Ring,
        connect,
        consume,
        process,
        produce,
        query,
        receive,
        record,
        replicate,
        send,
        synchronize,
    )
    from pto_wsp.schedule.capability import capabilities, workload_forms
    from pto_wsp.schedule.tiling import TilePlan
    from pto_wsp.trace.workload.collectives import all_to_all, allgather, allreduce, broadcast, halo, reduce_scatter, relayout
    from pto_wsp.trace.workload.moves import copy
    from pto_wsp.view.timeline import timeline
else:
    from pto_wsp.ir.tensor import Injective, Monotone, Tensor
    from pto_wsp.schedule.tunable import Tunable

__version__ = "0.1.0"

__all__ = [
    "Acc", "Arch", "Calendar", "Channel", "Constexpr", "DType", "Dense", "DenseDyn", "Deps", "DispatchPolicy", "Event", "In",
    "InOut", "Injective", "Kernel", "KernelBuilder", "Mesh", "Monotone", "Out", "P", "Package", "Partial", "Pools", "Process",
    "Program", "PtoError", "Ragged", "ReadyPolicy", "Replicate", "Ring", "Scalar", "Schedule", "Shard", "Sparse", "StartPolicy",
    "Symbol", "TaskWindow", "Tensor", "TensorLayout", "Tile", "TilePlan", "TimingPolicy", "TracePolicy", "Tunable",
    "WindowMode", "Workload", "WorkloadFunction", "all_to_all", "allgather", "allreduce", "auto_schedule", "axis", "broadcast",
    "builtin_arch", "capabilities", "ceildiv", "combine", "compare", "cond", "connect", "consume", "copy", "explore",
    "for_each", "halo", "jit", "jit_kernel", "kernel", "load", "maximum", "minimum", "parallel_for", "parse", "process",
    "produce", "pto", "ptoisa", "ptoisa_kernel", "query", "receive", "record", "reduce_scatter", "relayout", "replicate",
    "select", "send", "sequential", "slot_load_u64", "slot_set_u64", "slot_u64", "synchronize", "task", "timeline", "workload",
    "workload_forms",
]


if not TYPE_CHECKING:    # a type checker would take any name for one of the module's
    def __getattr__(name: str) -> object:
        """Return what only some programs need, or none before its kernels and workloads are there: it is loaded when asked for."""
        if name not in doors.LATE_NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = doors.late_name(name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """Return all names, those that are not loaded yet too: what a notebook completes."""
    return sorted({*globals(), *__all__})
