"""Run compiled programs: bind their inputs, execute them, and inspect the last run.

A program is compiled from a workload, or loaded from a folder that `save` wrote: `api.compiling` makes programs.
"""

from __future__ import annotations

import signal
import threading
import time
from _thread import start_new_thread as start_thread
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pto_wsp import doors
from pto_wsp.api.bindings import ProgramBindings, Sizes
from pto_wsp.arch.model import Arch
from pto_wsp.calls import user_calls
from pto_wsp.check.verdict import LINKS_DRAIN, CheckList, Verdict
from pto_wsp.errors import ArtifactFolderError, BindingError, ProgramStateError, PtoError, ThreadStartError
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.scalar import Scalar
from pto_wsp.ir.tensor import Tensor
from pto_wsp.pickling import InOneProcess
from pto_wsp.progress import is_visible, step
from pto_wsp.run.bound import Array, Bindings
from pto_wsp.run.native import Engine
from pto_wsp.run.prints import run_text
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here
from pto_wsp.targets.compiled import Compiled
from pto_wsp.trace.workload.pipelines import Channel, Event
from pto_wsp.values import dataclass

if TYPE_CHECKING:
    from pto_wsp.api.advise import Advices
    from pto_wsp.api.finished_run import FinishedRun
    from pto_wsp.artifact.contents import Package, PackageFiles
    from pto_wsp.run.interpreter import Interpreter
    from pto_wsp.run.sanitize import Sanitized
    from pto_wsp.run.verify import Verification
    from pto_wsp.schedule.schedule import Scheduled
    from pto_wsp.timing.comparison import Comparison
    from pto_wsp.timing.edges import TaskLike
    from pto_wsp.timing.explain import Explanation
    from pto_wsp.timing.graph import CriticalPath, RunGraph
    from pto_wsp.timing.retime import Simulation
    from pto_wsp.timing.stats import Stats
    from pto_wsp.timing.timed_run import TimedRun
    from pto_wsp.timing.trace import Trace, WallTrace


CHANNEL_LATENCY = "__pto_wsp_channel_latency_cycles"


# -- runs in a thread --------------------------------------------------------------------------------------------------
class RunEnd:
    """The end of a run in a separate thread, which other threads wait for.

    It is not a threading.Event, and the run is not a threading.Thread: Ctrl-C during a wait for one leaves its locks in a state that
    other threads do not expect.
    """

    def __init__(self) -> None:
        self.has_begun = False       # guarded, like is_abandoned, by the program's lock
        self.is_abandoned = False    # no thread waits for the run, so it must not begin
        self._is_over = False
        self._running = threading.Lock()
        self._running.acquire()

    def is_set(self) -> bool:
        """Tell whether the run is over."""
        return self._is_over

    def set(self) -> None:
        """Mark the run as over; the run's thread calls it once."""
        self._is_over = True
        self._running.release()

    def wait(self) -> None:
        """Wait until the run is over; react at once to its end and to Ctrl-C."""
        while not self._is_over:
            if self._running.acquire(timeout=0.2):     # released at once, because several threads may wait
                self._running.release()


@dataclass(frozen=True, slots=True)
class Progress:
    """Tasks of a run that are completed, and that have been made so far. `is_complete`: the run is over and all have run."""

    done: int
    made: int
    is_complete: bool

    def __str__(self) -> str:
        return f"{self.done:,} of {self.made:,} tasks"


_MOST_SHOWN = 20_000      # tasks up to which a notebook draws a program's run


# -- programs ----------------------------------------------------------------------------------------------------------
@user_calls()
class Program(InOneProcess, doors.Displayed):
    """The result of compile(). `execute()` starts a run and `synchronize()` waits for it; `run()` does both."""

    _instead = "save(folder) here and pto_wsp.load(folder) there, or send the workload and compile there: the cache has the code"

    def __init__(self, compiled: Compiled, wrapped: Sequence[Tensor | None], events: Sequence[tuple[int, Event]] = (),
                 channels: Sequence[Channel] = (), remake: Callable[[Arch], Compiled] | None = None,
                 sizes: Sizes = MappingProxyType({})) -> None:
        """Create a program.

        `wrapped` holds the workload's own tensor for each tensor slot; `events`, the events of this process by their numbers in the
        workload; `channels`, its channels; `remake` compiles the workload again for another arch; `sizes`, the extents of tensors that
        each run sizes.
        """
        self._compiled = compiled
        self._wrapped = list(wrapped)
        self._events = tuple(events)
        self._channels = tuple(channels)
        self._remake = remake
        self._given = ProgramBindings(self.plan, wrapped, sizes)
        self._over: RunEnd | None = None      # of a run that was started and not yet awaited
        self._call: object | None = None       # the call that prepares or executes a run
        self._changing = threading.Lock()
        self._bound: Bindings | None = None        # of the last run
        self._failure: BaseException | None = None
        self._ran = False
        self._execute_time_ms = 0.0
        self._finished: FinishedRun | None = None
        self._look_first()

    def _look_first(self) -> None:
        rules = self.plan.rules
        may_fill = rules.may_fill_links and (LINKS_DRAIN, Verdict.PROVED) not in [
            (finding.check, finding.verdict) for finding in self._compiled.findings]
        if self._compiled.runner is not None and (rules.calendar or may_fill):
            self._compiled.runner.look_first = partial(doors.check_recorded, self.plan)

    # -- running -------------------------------------------------------------------------------------------------------

    def execute(self, /, **bindings: object) -> None:
        """Start a run.

        Raises: R102, R113, R114 and W101 for bindings that do not fit (nothing has run then), R103 when a run has not been waited for.
        """
        self._start(bindings, 0)

    def _start(self, bindings: Mapping[str, object], order_seed: int) -> None:
        call = object()
        try:
            bound = self._prepare(call, bindings)
            over = self._over = RunEnd()
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

    def for_its_times(self) -> Program:
        """Return the program, for interp, for runs that tell simulated times alone: tasks that decide about no other tasks do not run."""
        runner = self._runner
        assert not isinstance(runner, Engine)
        runner.runs_all = False
        return self

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
        """Begin a call that no other call of this program may interrupt; the caller resets `_call` if it is still its own."""
        self._runner  # noqa: B018 - raises if there is no runner
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
        except BaseException as failure:   # synchronize() raises it
            self._failure = failure
        self._execute_time_ms = (time.perf_counter() - started) * 1e3

    def _run_until(self, over: RunEnd, bound: Bindings, order_seed: int) -> None:
        try:
            with self._changing:
                over.has_begun = not over.is_abandoned
            if over.has_begun:
                self._run(bound, order_seed)
        finally:
            over.set()

    def _abandon(self, over: RunEnd) -> None:
        """Cancel a run that may have started, and wait until it has stopped.

        A second Ctrl-C ends the wait and leaves the program running.
        """
        with self._changing:
            over.is_abandoned = True
        if over.has_begun:
            self._runner.cancel()
            over.wait()
        self._over, self._failure = None, None

    def synchronize(self) -> None:
        """Wait for the run, print what its tasks printed, and raise the error of the run.

        Raises: R101 with the task (kernel and indices), R104 for a view outside its tensor; R103 if no run was started.
        """
        over = self._over
        if over is None:
            if self._ran:
                return
            raise ProgramStateError("there is no run to wait for", here(), help="call execute() first, or run()")
        try:
            over.wait()
        except BaseException:    # KeyboardInterrupt, or an exception of a user's signal handler
            self._abandon(over)
            self._show_prints()
            raise
        with self._changing:
            was_mine = self._over is over
            if was_mine:
                self._over, self._ran = None, self._failure is None
        if was_mine:     # otherwise another thread also waited, and raises the error
            self._finish()

    def _finish(self) -> None:
        self._show_prints()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        self._ran = True
        for number, event in self._events:
            event.was_recorded = partial(self._was_recorded, number)
        for channel in self._channels:
            channel.is_over = True

    def _show_prints(self) -> None:
        prints = self._runner.take_prints()
        if prints.shown or prints.n_dropped:
            print(run_text(self.plan, prints), end="")

    def run(self, /, **bindings: object) -> Program:
        """Start a run, wait for it, and return the program."""
        return self._run_to_end(bindings, 0)

    def replay(self, seed: int, /, **bindings: object) -> Program:
        """Run as `run` does, one task at a time, in the order of a seed that a run with sanitize=True reported.

        Equal seeds and bindings give equal orders, whether or not the program is compiled with sanitize; without it, nothing is checked.
        Arrays that tasks update in place must contain their original values again. For interp the seed orders the tasks of pipelines,
        within program order in each process, tokens and events; the rest runs in program order.

        Raises: R102 for a value that is not a seed, R103 for a target that does not run here.
        """
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 < seed < 1 << 64:
            raise BindingError("replay takes the seed of a run", here(), expected="a whole number from 1 on that fits 64 bits",
                               found=repr(seed))
        return self._run_to_end(bindings, int(seed))

    def _run_to_end(self, bindings: Mapping[str, object], order_seed: int) -> Program:
        if not interrupts_as_usual():
            self._start(bindings, order_seed)
            self.synchronize()
            return self
        call = object()
        try:             # in this thread: starting one takes longer than a small run
            bound = self._prepare(call, bindings)
            if is_visible():
                with step("run, tasks", count=lambda: self.progress.done):
                    self._run(bound, order_seed)
            else:
                self._run(bound, order_seed)
        finally:
            if self._call is call:
                self._call = None
        self._finish()
        return self

    def verify(self, /, *, rtol: float | None = None, atol: float | None = None, **bindings: object) -> Verification:
        """Compare the artifact with the NumPy meaning: run both on copies of the arrays that `run` would use, and compare the results.

        Arrays and the last run are unchanged. Floats match if |found - expected| <= rtol * |expected| + atol. A tolerance of None allows
        some units in the last place, by dtype, of the element and of the tensor's largest element. All other dtypes must be equal. Bindings
        are as for `run`.

        Raises: R108 naming the element and the task that writes it last; R102 for an invalid tolerance; R103 for a target without an
        artifact that runs here; K108 for a kernel without a NumPy meaning; the errors of a run.
        """
        runner = self._compiled.to_verify()
        call = object()
        try:
            self._enter(call)
            return doors.verify_artifact(runner, self._given.of_run(bindings), rtol, atol,
                                         check_finite=self._compiled.options.check_finite)
        except PtoError as problem:
            for error in (problem, *problem.others):
                error.span = error.span or here()
            raise
        finally:
            if self._call is call:
                self._call = None

    def is_complete(self) -> bool:
        """Tell whether no run is in progress."""
        return self._call is None and (self._over is None or self._over.is_set())

    @property
    def progress(self) -> Progress:
        """How far the run is that goes on, from any thread, or how far the last one came: tasks completed, and tasks made so far.

        Before the first run: none of none.
        """
        runner = self._runner
        if self._bound is None:
            return Progress(0, 0, False)
        made, is_complete = runner.n_made(), self.is_complete()
        done = runner.n_run()
        return Progress(min(done, made), made, is_complete and done >= made)

    def set_symbol_u64(self, name: str, value: int) -> None:
        """Set the value of a symbol (or DenseDyn axis) for all later runs.

        The symbol `__pto_wsp_channel_latency_cycles` is the number `channels.latency_cycles` of the arch: the program is compiled again.
        Raises: R102 for an unknown name; R103 during a run, and for the latency of a program that was loaded; C110 for an impossible one.
        """
        if name == CHANNEL_LATENCY:
            self._set_channel_latency(value)
        else:
            self._given.set(name, value)

    def _set_channel_latency(self, cycles: object) -> None:
        if self._remake is None:
            raise ProgramStateError("the channel latency of a loaded program is what it was saved with", here(),
                                    help='compile the workload: compile(arch=builtin_arch("unit").with_channels(latency_cycles=...))')
        arch = self._compiled.arch.with_channels(latency_cycles=cycles)
        call = object()
        try:
            self._enter(call)
            self._compiled = self._remake(arch)
            self._look_first()
            self._given = self._given.of_plan(self.plan)
            self._ran, self._finished = False, None
        finally:
            if self._call is call:
                self._call = None

    def set_symbol_f32(self, name: str, value: float) -> None:
        """Set the value of a float symbol for all later runs."""
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise BindingError(f"symbol `{name}` is bound to a value of another kind", here(), expected="a number", found=repr(value))
        try:
            self._given.set(name, float(value))
        except OverflowError:
            raise BindingError(f"symbol `{name}` does not fit a float", here(), expected="at most 1.8e308") from None

    def set_axis_sizes(self, sizes: Mapping[str, int]) -> None:
        """Set the extents of DenseDyn axes for all later runs."""
        if not isinstance(sizes, Mapping):
            raise BindingError("set_axis_sizes takes a dict of names and extents", here(), found=repr(sizes))
        for name, size in sizes.items():
            self._given.set(name, size)

    # -- inspecting ----------------------------------------------------------------------------------------------------

    @property
    def compiled(self) -> Compiled:
        """The result of compiling: plan, options, findings, and the engine."""
        return self._compiled

    @property
    def scratch(self) -> Mapping[int, tuple[Scalar, ...]]:
        """The tensors that only pass values between tasks, by slot, with the extents that each run computes; () for fixed extents."""
        return {slot: self._given.sizes.get(slot, ()) for slot, tensor in enumerate(self._wrapped)
                if tensor is not None and tensor.intermediate and not self.plan.tensors[slot].fresh}

    @property
    def wrapped_tensors(self) -> tuple[Sequence[Tensor | None], Sizes]:
        """The workload's tensors by slot, and the extents of those that each run sizes."""
        return tuple(self._wrapped), self._given.sizes

    @property
    def wrapped(self) -> Mapping[int, Array]:
        """The arrays that the workload's tensors wrap, by slot."""
        return {slot: tensor.data for slot, tensor in enumerate(self._wrapped) if tensor is not None and tensor.data is not None}

    def bind(self, /, **bindings: object) -> Bindings:
        """Return the arrays and values that a run with these bindings works on, by slots of the plan. Nothing runs.

        Raises: R102, W101, W104 and R110 for what does not fit.
        """
        return self._given.of_run(bindings)

    @property
    def plan(self) -> TaskPlan:
        """The plan that the engine or the interpreter runs."""
        return self._compiled.plan

    @property
    def schedule(self) -> Schedule:
        """The schedule that the program was compiled with."""
        return self._compiled.schedule

    @property
    def artifact_dir(self) -> Path | None:
        """The folder of the artifact, with sources, library and manifest; None for interp."""
        return self._compiled.artifact_dir

    codegen_artifact_dir = artifact_dir

    @property
    def package(self) -> Package:
        """The artifact as a value: files, kernels, memory, checks; `package.diff(other)` compares it with another.

        Raises: R103 for interp, which has no artifact; C103 for an artifact that has been changed since.
        """
        root, _ = self._compiled.to_save()
        spans = {use.kernel.name: use.kernel.span for use in self.plan.kernels}
        made: Package = doors.late_module("pto_wsp.artifact.contents").Package(root, spans)
        return made

    @property
    def files(self) -> PackageFiles:
        """The files of the artifact by name: `program.files["kernels/aiv/rmsnorm.cpp"]`.

        Raises: as `package`.
        """
        return self.package.files

    @property
    def using_cpp_backend(self) -> bool:
        """Whether runs execute generated native code; False for interp, and for a package, which does not run here."""
        return isinstance(self._compiled.runner, Engine)

    def save(self, folder: str | Path) -> Path:
        """Write the program to an empty or new folder and return the folder; `load` and C programs read it.

        It contains everything a run needs except the data of the tensors. See docs/artifact.md.

        Raises: C107 for a folder that is not empty or cannot be written, and for a value that is not a path; R103 for interp, which has no
        artifact.
        """
        if not isinstance(folder, str | Path):
            raise ArtifactFolderError("save takes the folder that the program goes to", here(), expected="a path", found=repr(folder)[:200])
        self._compiled.to_save()
        made_here = [k for k, tensor in enumerate(self._wrapped) if tensor is not None and tensor.intermediate and not tensor.sized_by_runs]
        saved: Path = doors.late_module("pto_wsp.targets.save").save_compiled(self._compiled, made_here, Path(folder))
        return saved

    @property
    def manifest(self) -> object:
        """The artifact's manifest; None for interp."""
        return self._compiled.manifest

    @property
    def checks(self) -> CheckList:
        """The static checks with their verdicts, one line each."""
        return CheckList(self._compiled.findings)

    @property
    def sanitized(self) -> Sanitized | None:
        """What the last run checked, and its seed; None if the program was compiled without sanitize=True or has not run."""
        runner = self._runner
        return runner.sanitized if isinstance(runner, Engine) else None

    @property
    def stats(self) -> Stats:
        """The statistics of the last run; the cycles are simulated at the first access.

        Raises: R103 before a run is complete.
        """
        return self._look().stats

    @property
    def trace(self) -> Trace:
        """When and where each task of the last run was busy in simulated time.

        Raises: R103 before a run is complete, R115 when it had more tasks than a record keeps.
        """
        return self._look().trace

    @property
    def bytes_sent(self) -> np.ndarray[Any, Any]:
        """The bytes that the last run copied, by source and target rank of its mesh; what stays on a rank is on the diagonal.

        Raises: R103 before a run is complete, R115 when it had more tasks than a record keeps.
        """
        return self._look().bytes_sent()

    @property
    def bytes_over_mpi(self) -> np.ndarray[Any, Any]:
        """The bytes that copies of the last run sent from this process's rank to each rank, counted where they leave.

        Raises: R103 for a program of one process.
        """
        sent = self._compiled.sent
        if sent is None:
            raise ProgramStateError("the program runs in one process", here(), help="compile(mesh=mesh, comm=MPI.COMM_WORLD)")
        return sent.copy()

    @property
    def wall_trace(self) -> WallTrace:
        """When each task of the last run started and ended on this machine, and on which thread.

        Raises: R103 for a program that is not compiled for cpu_sim with wall_trace=True, before a run is complete, R115 when it had more
        tasks than a record keeps.
        """
        runner = self._compiled.to_watch_the_clock()
        return self._look().wall_trace(runner)

    @property
    def graph(self) -> RunGraph:
        """The tasks of the last run and every edge between them, with its reasons.

        Raises: R103 before a run is complete.
        """
        return self._look().graph

    @property
    def critical_path(self) -> CriticalPath:
        """The longest chain of tasks of the last run that wait for one another.

        Raises: R103 before a run is complete, R115 when it had more tasks than a record keeps.
        """
        return self._look().timed.critical_path

    def explain(self, task: TaskLike | None = None) -> Explanation:
        """Return why a task ran when it did in simulated time; `task` is its number, its name, or (kernel, indices).

        None selects the task that completed last; its chain() makes up the makespan.

        Raises: R103 before a run is complete, R115 when it had more tasks than a trace keeps; R112 for what names no task.
        """
        return self._look().timed.explainer.explain(task)

    def simulate(self, schedule: Schedule | Scheduled | None = None, arch: object = None,
                 overheads: bool | None = None) -> Simulation:
        """Return the tasks of the last run in simulated time with another schedule or arch; no kernel runs.

        schedule: a Schedule, or this workload under one (`w.dispatch(...)`); None: that of the program. arch: an Arch or the name of
        one; None: that of the program. overheads: count what submitting, dispatching and retiring a task costs an AICPU; None: as compiled.
        Raises: R103 before a run is complete, R103 and R115 where the recorded stream does not tell, S101, S103 and C104 as compile() does.
        """
        with step("simulate"):
            return self._look().simulate(schedule, arch, overheads)

    def advise(self, budget_s: float = 1.0, *, seed: int = 0) -> Advices:
        """Return the changes of the schedule that make the last run shorter, best first, each simulated on the tasks of the run.

        Single changes are tried and pairs of them: dispatch, executors, ready policy, window, pools, streams, edges. `budget_s`: seconds
        after which no further change is tried. `seed`: draws the order in which pairs are tried that no better reason orders. Where
        nothing helps, the result says what would. No kernel runs, and no result of the program changes; its card shows the best change.

        Raises: R103 before a run is complete, R103 and R115 where the recorded stream does not tell, S111 for another budget or seed.
        """
        return self._look().advise(budget_s, seed)

    def compare(self, *others: object, **named: object) -> Comparison:
        """Return the last run beside others, best first; the run itself is called "as run".

        Others are what `pto_wsp.compare` takes: schedules and changes of this program's, `{"wider": TaskWindow(256)}`, which are timed from
        the record of the run without running it again; other programs, simulations, figures.

        Raises: R103 before a run is complete, S112 for what cannot be compared, what `simulate` raises.
        """
        compared: Comparison = doors.late_module("pto_wsp.api.compare").compare_with(self, others, named)
        return compared

    @property
    def timed_run(self) -> TimedRun:
        """The last run in simulated time: plan, tasks and their times, from which figures, traces and graphs are made.

        Raises: R103 before a run is complete.
        """
        return self._look().timed

    def report(self, path: str | Path) -> Path:
        """Write a page of HTML about the last run and return its path.

        The page answers to clicks, keys and a search: docs/report.md. It is one file and asks for nothing outside itself; without scripts
        it shows the cards of program, lanes, figures, longest waits, workload and graph. After `advise()` on the run its card is shown too,
        and the head says the best change; without it nothing is simulated for the page.

        Raises: R103 before a run is complete, R115 for a run of more tasks than a trace keeps, C108 if the file cannot be written, T205 if
        `path` is no path.
        """
        done = self._look()
        trace, stats, graph = done.trace, done.stats, done.graph
        bound = () if self._bound is None else self._bound.arrays
        arrays = {slot.ref.id: array for slot, array in zip(self.plan.tensors, bound, strict=False) if not slot.fresh}
        cards = doors.late_module("pto_wsp.view.workload_cards")
        workload = cards.workload_card(self._compiled.workload, self.schedule, arrays, "")
        advice = () if done.advice is None else (done.advice.card,)
        shown = (self._program_card("", stats, trace, sent=done.sent_between_ranks()), *advice, trace.card, graph.card, workload)
        page = doors.late_module("pto_wsp.view.notebook")
        written: Path = page.write_page(shown, self.plan.name, path, done.page_json(shown[0].sentence, trace, stats, graph))
        return written

    def freeze(self) -> Schedule:
        """Return the program's schedule with a calendar of each task's executor, position and start in the simulated time of the last run.

        Raises: R103 before a run is complete, R115 for a run of more tasks than a trace keeps.
        """
        return self._look().freeze()

    def _look(self) -> FinishedRun:
        """Return the last finished run.

        Raises: R103 before a run is complete.
        """
        runner = self._runner
        if self._over is not None and self._over.is_set():
            self.synchronize()
        if not self._ran or self._bound is None:
            raise ProgramStateError("there is no finished run to look at", here(), help="call run(), or execute() and synchronize()")
        if self._finished is None:
            self._finished = doors.finished_run()(self._compiled, runner.to_look_at(self._bound), self._bound, self._execute_time_ms)
        return self._finished

    def _was_recorded(self, event: int) -> bool:
        """Tell whether the last run recorded an event of the workload."""
        return self._look().recorded(event)

    def __repr__(self) -> str:
        where = f", {self.artifact_dir.name}" if self.artifact_dir is not None else ""
        return f"Program({self.plan.name}, {self._compiled.target}{where})"

    @property
    def card(self) -> Any:
        """All that a notebook shows as data: its artifact, checks and last run."""
        done = self._finished if self._ran and self._over is None and self._finished is not None and self._finished.is_timed else None
        if done is None:
            state = "run; .stats and .trace simulate its cycles" if self._ran else "not run: .run()"
            return self._program_card(state if self._compiled.runner is not None else "not run here: .package shows it", None, None)
        stats = done.stats
        return self._program_card("", stats, done.trace if stats.task_count <= _MOST_SHOWN else None,
                                  done.timed.regions, done.sent_between_ranks())

    def _program_card(self, state: str, stats: Stats | None, trace: Trace | None, regions: Any = None,
                      sent: np.ndarray[Any, Any] | None = None) -> Any:
        """Return the card of the program. The others are of its last run, None without one; a long trace is left out."""
        folder = self.artifact_dir
        facts = [("artifact", folder.name)] if folder is not None else []
        facts += [("kernels", f"{len(self.plan.kernels):,}"), ("tensors", f"{len(self.plan.tensors):,}")]
        cards = doors.late_module("pto_wsp.view.program_cards")
        return cards.program_card(self.plan.name, self._compiled.target, state, facts, self.checks, self.schedule, stats,
                                  trace if trace is not None and len(trace) <= _MOST_SHOWN else None, regions, sent)


def interrupts_as_usual() -> bool:
    """Tell whether Ctrl-C raises KeyboardInterrupt or does nothing, as in the engine.

    A signal handler of the user needs the main thread.
    """
    return signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN, signal.SIG_DFL)
