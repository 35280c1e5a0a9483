"""What ends a simulation at a task: no room in the window, or cycles that do not fit 64 bits."""

from __future__ import annotations

from typing import Any

from pto_wsp.errors import CyclesError, WindowError
from pto_wsp.plan.model import TaskPlan
from pto_wsp.plan.rules import FullWindow, WindowUnit
from pto_wsp.plan.walk import submits
from pto_wsp.runtime.failures.errors import task_name
from pto_wsp.wording import counted


class SimulationEnded(Exception):
    """The simulator ended at a task, by its number in the stream; -1: at none in particular."""

    def __init__(self, task: int) -> None:
        super().__init__(f"ended at task {task}")
        self.task = task


class WindowFull(SimulationEnded):
    """The window had no room for the task."""

    def __init__(self, task: int, taken: int) -> None:
        super().__init__(task)
        self.taken = taken


class CyclesOverflow(SimulationEnded):
    """A sum of cycles does not fit 64 bits."""


def ended_error(plan: TaskPlan, runtime: Any, raw: Any, ended: SimulationEnded, n_run: int = 0) -> WindowError | CyclesError:
    """Return the user's error; `raw`: the record's pto_columns, which has forgotten the task where the stream was too long to keep."""
    return _window_error(plan, runtime, raw, ended, n_run) if isinstance(ended, WindowFull) else _cycles_error(plan, raw, ended)


def _cycles_error(plan: TaskPlan, raw: Any, ended: SimulationEnded) -> CyclesError:
    task = ended.task - raw.first_task
    message, expected, help = "simulated cycles do not fit 64 bits", f"sums below {1 << 63}", "give costs in a larger unit"
    if ended.task < 0 or not 0 <= task < raw.n_tasks:
        at = f" at task {ended.task} of the stream" if ended.task >= 0 else ""
        return CyclesError(message + at, None, expected=expected, help=help)
    submit = submits(plan)[raw.task_site[task]]
    index = [raw.index[k] for k in range(raw.index_begin[task], raw.index_begin[task + 1])]
    return CyclesError(f"{message} at task {task_name(plan, submit, index)}", submit.span, expected=expected, help=help)


def _window_error(plan: TaskPlan, runtime: Any, raw: Any, full: WindowFull, n_run: int) -> WindowError:
    rules, task = plan.rules, full.task - raw.first_task
    notes = (f"{counted(n_run, 'task')} had run before: the stream depends on what they compute",) if n_run else ()
    ends = f"; WindowMode.{rules.full_window.name} ends the run" if rules.full_window is FullWindow.ABORT else ""
    if not 0 <= task < raw.n_tasks:
        return WindowError(f"task {full.task} of the stream found no room in the window", None, expected=f"room in a {rules.window_text}",
                           found=f"up to {full.taken} taken{ends}", help=_HELP, notes=notes)
    submit = submits(plan)[raw.task_site[task]]
    index = [raw.index[k] for k in range(raw.index_begin[task], raw.index_begin[task + 1])]
    need = _need(runtime, raw, task, rules.window_unit)
    return WindowError(f"task {task_name(plan, submit, index)} found no room in the window", submit.span,
                       expected=f"room for {rules.window_unit.amount(need)} in a {rules.window_text}",
                       found=f"up to {full.taken} taken{ends}", help=_HELP, notes=notes)


_HELP = "give the window more room; WindowMode.STALL waits, WindowMode.BENCHMARK counts and goes on"


def _need(runtime: Any, raw: Any, task: int, unit: WindowUnit) -> int:
    """Return what the simulator takes the task to need of the window."""
    args = [raw.args[k] for k in range(raw.arg_begin[task], raw.arg_begin[task + 1])]
    match unit:
        case WindowUnit.TASKS:
            return 1
        case WindowUnit.ENTRIES:
            return len(args)
        case WindowUnit.BYTES:
            return sum(arg.extent[0] * arg.extent[1] * arg.elem_bytes for arg in args if arg.flags & runtime.lib.PTO_KEPT)
