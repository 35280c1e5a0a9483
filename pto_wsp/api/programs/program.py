"""A compiled workload: bind, run, and look at what happened."""

from __future__ import annotations

import signal
import threading
import time
from _thread import start_new_thread as start_thread
from collections.abc import Mapping, Sequence
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pto_wsp.api.programs.bindings import ProgramBindings
from pto_wsp.api.programs.ending import Ending
from pto_wsp.errors import ArtifactFolderError, BindingError, ProgramStateError, PtoError, ThreadStartError
from pto_wsp.frontend.workload.csp.ends import Event
from pto_wsp.plan.model import TaskPlan
from pto_wsp.runtime.bound.binding import Bindings
from pto_wsp.runtime.native.recorder import Recorder
from pto_wsp.runtime.native.run import Engine
from pto_wsp.runtime.prints import run_text
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.targets.compiled import Compiled
from pto_wsp.types.tensor import Tensor

if TYPE_CHECKING:
    from pto_wsp.api.programs.finished_run import FinishedRun
    from pto_wsp.api.scheduled import Scheduled
    from pto_wsp.report.explain import Explanation
    from pto_wsp.report.graph import TaskGraph
    from pto_wsp.report.path import CriticalPath
    from pto_wsp.report.stats import Stats
    from pto_wsp.report.tasks import TaskLike
    from pto_wsp.report.trace import Trace
    from pto_wsp.report.wall_trace import WallTrace
    from pto_wsp.retime.simulation import Simulation
    from pto_wsp.runtime.interpreter.run import Interpreter
    from pto_wsp.runtime.sanitize.watch import Sanitized
    from pto_wsp.runtime.verification.verify import Verification


class Program:
    """What compile() returns. `execute()` starts a run, `synchronize()` waits for it; `run()` is both."""

    def __init__(self, compiled: Compiled, wrapped: Sequence[Tensor | None], events: Sequence[tuple[int, Event]] = ()) -> None:
        """`wrapped`: by tensor slot, what the workload was written with; `events`: of this process, by their numbers in the workload."""
        self._compiled = compiled
        self._wrapped = list(wrapped)
        self._events = tuple(events)
        self._given = ProgramBindings(self.plan, wrapped)
        self._over: Ending | None = None      # of a run that was started and not waited for
        self._call: object | None = None       # a call of this program that prepares a run, or runs it
        self._changing = threading.Lock()
        self._bound: Bindings | None = None        # of the last run
        self._failure: BaseException | None = None
        self._ran = False
        self._execute_time_ms = 0.0
        self._finished: FinishedRun | None = None
        if compiled.runner is not None and self.plan.rules.calendar:
            compiled.runner.look_first = partial(_check_calendar, self.plan)

    # ---- running ----

    def execute(self, /, **bindings: object) -> None:
        """Start a run. Bindings are by name: arrays for tensors, numbers for symbols and DenseDyn axes, axes for Ragged and Sparse ones;
        they last this one run.

        Raises: R102 and W101 for bindings that do not fit (nothing has run then), R103 when a run has not been waited for.
        """
        self._start(bindings, 0)

    def _start(self, bindings: Mapping[str, object], order_seed: int) -> None:
        call = object()
        try:
            bound = self._prepare(call, bindings)
            over = self._over = Ending()
            try:
                start_thread(copy_context().run, (self._run_until, over, bound, order_seed))
            except RuntimeError:
                self._over = None
                raise ThreadStartError("a thread for the run could not be started", here(), found="the system refuses it",
                                       help="run() from the main thread needs none; or raise `ulimit -u`") from None
            except BaseException:     # Ctrl-C while the thread starts
                self._abandon(over)
                raise
        finally:
            if self._call is call:
                self._call = None

    @property
    def _runner(self) -> Engine | Interpreter:
        return self._compiled.to_run()

    def _prepare(self, call: object, bindings: Mapping[str, object]) -> Bindings:
        self._enter(call)
        bound = self._bound = self._given.of_run(bindings)
        self._runner.begin()
        self._failure = None
        if self._finished is not None:
            self._finished.is_over = True
        self._ran, self._finished = False, None
        return bound

    def _enter(self, call: object) -> None:
        """Begin a call that no other one of this program may come between; whoever calls takes `_call` back when it is theirs."""
        self._runner  # noqa: B018 - there must be one
        with self._changing:
            if self._over is not None or self._call is not None:
                raise ProgramStateError("the program is running already", here(),
                                        help="call synchronize() between two execute(); for runs side by side, compile a program for "
                                        "each thread")
            self._call = call

    def _run(self, bound: Bindings, order_seed: int) -> None:
        started = time.perf_counter()
        try:
            self._runner.run(bound, order_seed)
        except BaseException as failure:   # carried over to synchronize()
            self._failure = failure
        self._execute_time_ms = (time.perf_counter() - started) * 1e3

    def _run_until(self, over: Ending, bound: Bindings, order_seed: int) -> None:
        try:
            with self._changing:
                over.has_begun = not over.is_abandoned
            if over.has_begun:
                self._run(bound, order_seed)
        finally:
            over.set()

    def _abandon(self, over: Ending) -> None:
        """End a run that has been started, perhaps, and wait until nothing of it goes on. A second Ctrl-C ends the wait, and leaves the
        program running."""
        with self._changing:
            over.is_abandoned = True
        if over.has_begun:
            self._runner.cancel()
            over.wait()
        self._over, self._failure = None, None

    def synchronize(self) -> None:
        """Wait for the run, print what its tasks printed, and raise what went wrong in it.

        Raises: R101 with the task (kernel and indices), R104 for a view outside its tensor; R103 when nothing was started.
        """
        over = self._over
        if over is None:
            if self._ran:
                return
            raise ProgramStateError("there is no run to wait for", here(), help="call execute() first, or run()")
        try:
            over.wait()
        except BaseException:    # KeyboardInterrupt, or what a handler of the user's own raises
            self._abandon(over)
            self._show_prints()
            raise
        with self._changing:
            was_mine = self._over is over
            if was_mine:
                self._over, self._ran = None, self._failure is None
        if was_mine:     # else another thread has waited for it as well, and has what it raises
            self._finish()

    def _finish(self) -> None:
        self._show_prints()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        self._ran = True
        for number, event in self._events:
            event.was_recorded = partial(self._was_recorded, number)

    def _show_prints(self) -> None:
        prints = self._runner.take_prints()
        if prints.shown or prints.n_dropped:
            print(run_text(self.plan, prints), end="")

    def run(self, /, **bindings: object) -> Program:
        """Start a run, wait for it, and return the program."""
        return self._run_to_end(bindings, 0)

    def replay(self, seed: int, /, **bindings: object) -> Program:
        """Run as `run` does, one task at a time in the order of this seed: that which a run with sanitize=True shows.

        The same seed and bindings give the same order, compiled with sanitize or without: then nothing is watched. Arrays that tasks
        update in place have to hold again what they held. For interp the seed orders the tasks of pipelines: any order that program order
        in each process, tokens and events allow; what is outside of pipelines runs in program order.
        Raises: R102 for what is no seed, R103 for a target that does not run here.
        """
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 < seed < 1 << 64:
            raise BindingError("replay takes the seed of a run", here(), expected="a whole number from 1 on that fits 64 bits",
                               found=repr(seed))
        return self._run_to_end(bindings, int(seed))

    def _run_to_end(self, bindings: Mapping[str, object], order_seed: int) -> Program:
        if not _interrupts_as_usual():
            self._start(bindings, order_seed)
            self.synchronize()
            return self
        call = object()
        try:             # no thread of its own: starting one takes longer than a small run
            self._run(self._prepare(call, bindings), order_seed)
        finally:
            if self._call is call:
                self._call = None
        self._finish()
        return self

    def verify(self, /, *, rtol: float | None = None, atol: float | None = None, **bindings: object) -> Verification:
        """Hold the artifact against the NumPy meaning: run both on copies of what `run` would work on, and compare what they leave.

        No array and nothing of the last run changes. |found - expected| <= rtol * |expected| + atol for floats; None: some units in the
        last place, by dtype, of the element and of the tensor's largest one. All else is equal. Bindings are as for `run`.
        Raises: R108 naming the element and the task that writes it last; R102 for a tolerance that is none; R103 for a target without an
        artifact that runs here; K108 for a kernel without a meaning in NumPy; what a run raises.
        """
        from pto_wsp.runtime.verification.tolerance import read_tolerance
        from pto_wsp.runtime.verification.verify import verify_artifact  # loads the interpreter

        tolerance = read_tolerance(rtol, atol)
        runner = self._compiled.to_verify()
        call = object()
        try:
            self._enter(call)
            return verify_artifact(runner, self._given.of_run(bindings), tolerance, check_finite=self._compiled.options.check_finite)
        except PtoError as problem:
            for error in (problem, *problem.others):
                error.span = error.span or here()
            raise
        finally:
            if self._call is call:
                self._call = None

    def is_complete(self) -> bool:
        """Tell whether no run is under way."""
        return self._call is None and (self._over is None or self._over.is_set())

    def set_symbol_u64(self, name: str, value: int) -> None:
        """Give a symbol (or DenseDyn axis) a value for all later runs."""
        self._given.set(name, value)

    def set_symbol_f32(self, name: str, value: float) -> None:
        """Give a float symbol a value for all later runs."""
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise BindingError(f"symbol `{name}` is bound to a value of another kind", here(), expected="a number", found=repr(value))
        try:
            self._given.set(name, float(value))
        except OverflowError:
            raise BindingError(f"symbol `{name}` does not fit a float", here(), expected="at most 1.8e308") from None

    def set_axis_sizes(self, sizes: Mapping[str, int]) -> None:
        """Give DenseDyn axes their extents for all later runs."""
        if not isinstance(sizes, Mapping):
            raise BindingError("set_axis_sizes takes a dict of names and extents", here(), found=repr(sizes))
        for name, size in sizes.items():
            self._given.set(name, size)

    # ---- looking ----

    @property
    def plan(self) -> TaskPlan:
        """The plan that both engines run."""
        return self._compiled.plan

    @property
    def schedule(self) -> Schedule:
        """The schedule that it was compiled under."""
        return self._compiled.schedule

    @property
    def artifact_dir(self) -> Path | None:
        """The artifact's folder: sources, library, manifest. None for interp."""
        return self._compiled.artifact_dir

    codegen_artifact_dir = artifact_dir

    def save(self, folder: str | Path) -> Path:
        """Write the program to a folder, which must not hold anything yet, and return it: `load` takes it from there, and so does C.

        It has everything that a run needs but the tensors' data. See docs/artifact.md.
        Raises: C107 for a folder that is not empty or cannot be written, and for what is no path; R103 for interp, which has no artifact.
        """
        if not isinstance(folder, str | Path):
            raise ArtifactFolderError("save takes the folder that the program goes to", here(), expected="a path", found=repr(folder)[:200])
        self._compiled.to_save()
        from pto_wsp.targets.save import save_compiled  # loads what generates code

        made_here = [k for k, tensor in enumerate(self._wrapped) if tensor is not None and tensor.intermediate]
        return save_compiled(self._compiled, made_here, Path(folder))

    @property
    def manifest(self) -> object:
        """The artifact's manifest. None for interp."""
        return self._compiled.manifest

    @property
    def checks(self) -> tuple[str, ...]:
        """The static checks with their verdicts, a line each."""
        return tuple(dict.fromkeys(f"{f.verdict.value}: {f.check} ({f.detail})" for f in self._compiled.findings))

    @property
    def sanitized(self) -> Sanitized | None:
        """What the last run looked at, and its seed. None for a program that is not compiled with sanitize=True, or has not run."""
        runner = self._runner
        return runner.sanitized if isinstance(runner, Engine) else None

    @property
    def stats(self) -> Stats:
        """Figures of the last run; the cycles are simulated when first asked for.

        Raises: R103 before a run is complete.
        """
        return self._look().stats

    @property
    def trace(self) -> Trace:
        """When each task of the last run was busy in simulated time, and where.

        Raises: R103 before a run is complete, or when it had more tasks than a record keeps.
        """
        return self._look().timed.trace

    @property
    def wall_trace(self) -> WallTrace:
        """When each task of the last run began and ended on this machine, and on which thread. Printed, with what recording took.

        Raises: R103 for a program that is not compiled for cpu_sim with wall_trace=True, before a run is complete, or when it had more
        tasks than a record keeps.
        """
        runner = self._compiled.to_watch_the_clock()
        return self._look().wall_trace(runner)

    @property
    def graph(self) -> TaskGraph:
        """The tasks of the last run and every edge between them, with its reasons.

        Raises: R103 before a run is complete.
        """
        return self._look().graph

    @property
    def critical_path(self) -> CriticalPath:
        """The longest chain of tasks of the last run that wait for one another.

        Raises: R103 before a run is complete, or when it had more tasks than a record keeps.
        """
        return self._look().timed.critical_path

    def explain(self, task: TaskLike | None = None) -> Explanation:
        """Return why a task ran when it did in simulated time: by its number, its name, or (kernel, indices).

        None: the task that completed last, whose chain() is what the makespan is made of.

        Raises: R103 before a run is complete, or when it had more tasks than a trace keeps; T205 for what names no task.
        """
        return self._look().timed.explainer.explain(task)

    def simulate(self, schedule: Schedule | Scheduled | None = None, arch: object = None,
                 overheads: bool | None = None) -> Simulation:
        """Return the tasks of the last run in simulated time under another schedule, on another arch: no kernel runs.

        schedule: a Schedule, or this workload under one (`w.dispatch(...)`); None: that of the program. arch: an Arch or the name of
        one; None: that of the program. overheads: count what submitting, dispatching and retiring a task costs an AICPU; None: as compiled.
        Raises: R103 before a run is complete and where the recorded stream does not tell, S101, S103 and C104 as compile() does.
        """
        return self._look().simulate(schedule, arch, overheads)

    def freeze(self) -> Schedule:
        """Return the program's schedule with a calendar: each task's executor, position and start in the simulated time of the last run.

        Raises: R103 before a run is complete, and for a run of more tasks than a trace keeps.
        """
        return self._look().freeze()

    def _look(self) -> FinishedRun:
        """Return what the last run left.

        Raises: R103 before a run is complete.
        """
        runner = self._runner
        if self._over is not None and self._over.is_set():
            self.synchronize()
        if not self._ran or self._bound is None:
            raise ProgramStateError("there is no finished run to look at", here(), help="call run(), or execute() and synchronize()")
        if self._finished is None:
            from pto_wsp.api.programs.finished_run import FinishedRun  # loads reports, and what times a run again

            self._finished = FinishedRun(self._compiled, runner, self._bound, self._execute_time_ms)
        return self._finished

    def _was_recorded(self, event: int) -> bool:
        """Tell whether the last run recorded an event of the workload."""
        return self._look().recorded(event)

    def __repr__(self) -> str:
        where = f", {self.artifact_dir.name}" if self.artifact_dir is not None else ""
        return f"Program({self.plan.name}, {self._compiled.target}{where})"


def _check_calendar(plan: TaskPlan, recorder: Recorder, bindings: Bindings) -> None:
    from pto_wsp.retime.calendar_check import check_recorded  # loads reports: only a calendar is looked at

    check_recorded(plan, recorder, bindings)


def _interrupts_as_usual() -> bool:
    """Tell whether Ctrl-C does what the engine would do: raise KeyboardInterrupt, or nothing. A handler of the user's own has to be run."""
    return signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN, signal.SIG_DFL)
