"""`@workload` and what it returns: an immutable typed expression with the fluent chain to a program."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pto_wsp.api.scheduled import Scheduled, schedule_of
from pto_wsp.api.workloads.tunable import tunables_of, usual_value
from pto_wsp.errors import ArityError, LoopVariableError, UnknownNameError, WorkloadStructureError
from pto_wsp.expr import codec
from pto_wsp.expr import workload as wl
from pto_wsp.expr.rewrite import Canonical, canonical, free_handles, free_vars, with_fresh_ids
from pto_wsp.expr.workload_text import print_workload
from pto_wsp.expr.workload_type import type_of
from pto_wsp.frontend.workload.trace import Placed, place, stands_here, trace_workload, unplace
from pto_wsp.schedule.calendar import Calendar
from pto_wsp.schedule.directives import (
    Deps,
    Dispatch,
    Pools,
    ReadyPolicy,
    SpatialMap,
    StartPolicy,
    TaskWindow,
    Timing,
    TracePolicy,
)
from pto_wsp.schedule.keys import KeyLike, trace_key
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.source import here, repeated
from pto_wsp.types.tensor import Tensor

if TYPE_CHECKING:
    from pto_wsp.api.programs.lowered import Lowered
    from pto_wsp.api.programs.program import Program
    from pto_wsp.runtime.stream.task_list import TaskList


class Workload(Scheduled):
    """A workload and its schedule. Every method returns a new value; the order of directives does not matter."""

    __slots__ = ("_node", "_placed", "_tensors")

    def __init__(self, node: wl.Workload, tensors: Mapping[int, Tensor], schedule: Schedule | None = None) -> None:
        self._node = node
        self._tensors = dict(tensors)
        self._placed: Placed | None = None
        self.schedule = schedule or Schedule()

    # ---- what it is ----

    @property
    def name(self) -> str:
        """The function's name."""
        return self._node.name

    @property
    def node(self) -> wl.Workload:
        """The expression itself: frozen, comparable, without buffers."""
        return self._canonical.workload

    @property
    def type(self) -> str:
        """Axes, tasks and kind: `Workload[batch: Dense[4] → k(x: In, y: Out), Independent]`, in lines of at most 100 columns."""
        return type_of(self.node)

    def tasks(self, /, **sizes: object) -> TaskList:
        """Return the tasks of a small workload in program order, each with its indices and the regions that it is bound to. None runs.

        `sizes`: symbols, axes and tensors by name, as for `run`.
        Raises: R102 for what does not fit, R103 for more than 1000 tasks, or where tasks decide which tasks there are.
        """
        from pto_wsp.api.programs.task_list import tasks_of  # loads what enumerates tasks

        return tasks_of(self._canonical, self._tensors, sizes)

    def to_json(self) -> str:
        """Return the expression as JSON; `Workload.from_json` reads it back, asking for bindings."""
        return codec.dumps(self.node)

    @staticmethod
    def from_json(text: str, *, bodies: bool = False) -> Workload:
        """Return the workload that `to_json` wrote. Its tensors have no buffers: bind them by name when it runs.

        The text is data: what it says is held to the rules of a traced workload. `bodies`: take kernels with a body in C or C++ too,
        which runs as code when the workload does.
        Raises: W102 for text that is no workload; K107 for a body in C or C++ without `bodies`.
        """
        from pto_wsp.frontend.data.workload import check_workload  # traces again what it reads

        node = codec.loads(text)
        if not isinstance(node, wl.Workload):
            raise WorkloadStructureError("this JSON is not a workload", here(), found=type(node).__name__)
        check_workload(node, bodies=bodies)
        return Workload(node, {})

    def __eq__(self, other: object) -> bool:
        if isinstance(other, wl.Workload):   # what repr() reads back as
            return self.node == canonical(other).workload and self.schedule == Schedule()
        return isinstance(other, Workload) and (self.node, self.schedule) == (other.node, other.schedule)

    def __hash__(self) -> int:
        return hash(self.node)

    def __repr__(self) -> str:
        return repr(self.node)   # evaluates to an equal expression; print(w) is for reading

    def __str__(self) -> str:
        return print_workload(self.node)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    @property
    def _canonical(self) -> Canonical:
        return canonical(self._node)

    # ---- putting workloads together ----

    def __rshift__(self, other: Workload) -> Workload:
        return sequential(self, other)

    def __or__(self, other: Workload) -> Workload:
        return combine(self, other)

    # ---- schedule ----

    def dispatch(self, policy: Dispatch) -> Workload:
        """Say which executor each task is home on."""
        return self._scheduled(self.schedule.saying(dispatch=policy))

    def streams(self, n: int) -> Workload:
        """Run tasks in n streams."""
        return self._scheduled(self.schedule.saying(streams=n))

    def stream_by(self, key: KeyLike) -> Workload:
        """Say which stream each task is in."""
        return self._scheduled(self.schedule.having(stream_by=trace_key(key, "stream_by")))

    def timing(self, policy: Timing) -> Workload:
        """Say when submitted tasks are released."""
        return self._scheduled(self.schedule.saying(timing=policy))

    def task_graph(self, *, deps: Deps | None = None, window: TaskWindow | None = None, pools: Pools | None = None,
                   ready: ReadyPolicy | None = None, start: StartPolicy | None = None, trace: TracePolicy | None = None) -> Workload:
        """Take edges from data instead of structure, and bound the graph. Fields merge with an earlier task_graph."""
        return self._scheduled(self.schedule.with_task_graph(deps=deps, window=window, pools=pools, ready=ready, start=start,
                                                             trace=trace))

    def calendar(self, plan: KeyLike | Sequence[Sequence[int]] | Calendar) -> Workload:
        """Say for each task which executor runs it and in which position: a function of the task, a table of pairs, or a Calendar."""
        return self._scheduled(self.schedule.having(calendar=Calendar.of(plan)))

    def spatial_map(self, grid: Sequence[int]) -> Workload:
        """Say which grid of cores the workload is laid out on."""
        return self._scheduled(self.schedule.having(spatial_map=SpatialMap.of(grid)))

    def under(self, schedule: Schedule) -> Workload:
        """Return the workload under a whole schedule, such as freeze() or auto_schedule() give: what was said before is gone.

        Raises: S102 for what is no schedule.
        """
        return self._scheduled(schedule_of(schedule, self.node))

    def named(self, name: str) -> Workload:
        """Give the schedule a name."""
        return self._scheduled(self.schedule.saying(name=name))

    def _scheduled(self, schedule: Schedule) -> Workload:
        scheduled = Workload(self._node, self._tensors, schedule)
        scheduled._placed = self._placed   # the same tasks: a combinator takes them out wherever they stand
        return scheduled

    # ---- running ----

    def compile(self, target: str = "cpu_sim", arch: object = None, strict: bool = True,
                passes: Mapping[str, Callable[..., object]] | None = None, **options: object) -> Program:
        """Return a program: lowered, checked, built.

        target: cpu_sim (C on this machine's CPU) or interp (NumPy, the oracle). arch: whose cycles are simulated. strict: refuse
        directives that the target does not enforce, else record them and warn once. passes: functions (IR, context) -> IR that run in
        place of the passes of these names. options: fields of CompileOptions.
        Raises: C101 to C105, C113, C114, S101, S103, T301 and W104.
        """
        self._refuse_parts()
        from pto_wsp.api.programs.making import compile_program  # loads what compiles and what runs

        try:
            return compile_program(self._canonical, self._tensors, self.schedule, target=target, arch=arch, strict=strict, passes=passes,
                                   options=options)
        except RecursionError as problem:
            raise _too_deep(f"compiling workload `{self.name}`", problem) from None

    def lower(self, target: str = "cpu_sim", until: str | None = None, arch: object = None, strict: bool = True,
              passes: Mapping[str, Callable[..., object]] | None = None, **options: object) -> Lowered:
        """Return what a pass of the target gives; print it to read it. Nothing is generated, and no check of the plan is made.

        until: the name of the pass, one that `pto-wsp passes` lists; None for the last. The rest is as for `compile`.
        Raises: C114 for a name that no pass of the target has, and what `compile` raises up to there.
        """
        self._refuse_parts()
        from pto_wsp.api.programs.making import lower_program  # loads what compiles and what runs

        try:
            return lower_program(self._canonical, self._tensors, self.schedule, until, target=target, arch=arch, strict=strict,
                                 passes=passes, options=options)
        except RecursionError as problem:
            raise _too_deep(f"lowering workload `{self.name}`", problem) from None

    def _refuse_parts(self) -> None:
        """Refuse a workload that is a part of another one.

        Raises: W104.
        """
        for var in free_vars(self._node.body):
            raise LoopVariableError(f"loop variable `{var.name}` is used outside its loop", here(),
                                    help="compile the workload that has the loop; this one is a part of its body")
        for node in free_handles(self._node.body):
            raise LoopVariableError("after= names a task that is not part of this workload", node.span,
                                    help="compile the workload that has both tasks")


class WorkloadFunction:
    """What `@workload` makes of a function: calling it traces the body once and returns the Workload."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._usual = {name: tunable.default for name, tunable in tunables_of(function).items()}
        self._signature = inspect.signature(function) if self._usual else None
        functools.update_wrapper(self, function)

    def __call__(self, /, *args: object, **kwargs: object) -> Workload:
        """Trace the function with these arguments; a Tunable that is left out is its first value. Inside another workload, the tasks
        also become part of that one."""
        if self._signature is not None:
            given = self._signature.bind_partial(*args, **kwargs).arguments
            kwargs = {**{name: value for name, value in self._usual.items() if name not in given}, **kwargs}
        args = tuple(usual_value(value) for value in args)
        kwargs = {name: usual_value(value) for name, value in kwargs.items()}
        try:
            node, trace = trace_workload(self._function.__name__, lambda: embed(self._function(*args, **kwargs)))
        except RecursionError as problem:
            raise _too_deep(f"workload `{self._function.__name__}`", problem) from None
        workload = Workload(node, trace.tensors)
        workload._placed = place(node.body, trace.tensors)
        return workload

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        made = self.__dict__.get("__name__", "it")
        raise UnknownNameError(f"the function of workload `{made}` has no `{name}`", here(),
                               expected=f"{made}(), which returns the Workload",
                               help=f"call it first: {made}().{name}" if hasattr(Workload, name) else None)

    def __repr__(self) -> str:
        return f"workload {self._function.__name__}"


def _too_deep(what: str, problem: RecursionError) -> WorkloadStructureError:
    """Return the error for what ran into Python's recursion limit."""
    again = repeated(problem)
    found = None if again is None else f"`{again[0]}` calls itself"
    return WorkloadStructureError(f"{what} goes deeper than Python's recursion limit", here() if again is None else again[1], found=found,
                                  help="a workload is traced once: recursion needs a Python number that ends it; "
                                       f"sys.setrecursionlimit({2 * sys.getrecursionlimit()}) allows more")


def workload(function: Callable[..., object]) -> WorkloadFunction:
    """Decorate a function as a workload. It may take parameters: axes, tensors, numbers, other workloads."""
    if not inspect.isfunction(function) or inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise WorkloadStructureError("a workload is a plain function", here(), expected="def name(...): ...", found=repr(function),
                                     help="yield, async and await have no meaning in it")
    return WorkloadFunction(function)


def sequential(*parts: Workload) -> Workload:
    """Return the workloads one after the other, in program order."""
    return _together("sequential", parts, _one_after_the_other)


def combine(*parts: Workload) -> Workload:
    """Return the workloads side by side, without an order between them."""
    return _together("combine", parts, _side_by_side)


def _one_after_the_other(blocks: Sequence[wl.Block]) -> wl.Block:
    """Return a body of bodies; those that are such bodies themselves give their parts, so that a >> b >> c is as deep as a >> b."""
    return wl.Block(tuple(part for block in blocks for part in
                          (block.items if block.items and all(isinstance(item, wl.Block) for item in block.items) else (block,))))


def _side_by_side(blocks: Sequence[wl.Block]) -> wl.Block:
    """Return a body of sides; those that are nothing but sides themselves give theirs, so that a | b | c is as deep as a | b."""
    sides: list[wl.Block] = []
    for block in blocks:
        match block.items:
            case (wl.Combine(inner),):
                sides += inner
            case _:
                sides.append(block)
    return wl.Block((wl.Combine(tuple(sides)),))


def _together(how: str, parts: Sequence[object], make: Callable[[Sequence[wl.Block]], wl.Block]) -> Workload:
    if not parts:
        raise ArityError(f"{how} takes at least one workload", here())
    sides = tuple(_as_workload(how, part) for part in parts)
    blocks: list[wl.Block] = []
    tensors: dict[int, Tensor] = {}
    for part in sides:
        blocks.append(with_fresh_ids(part._node.body))
        tensors |= part._tensors
        if part._placed is not None:
            unplace(part._placed)
    schedules = [part.schedule for part in sides if part.schedule != Schedule()]
    if any(schedule != schedules[0] for schedule in schedules):
        raise WorkloadStructureError(f"{how} of workloads with different schedules", here(),
                                     help=f"put them together first, then schedule the whole: {how}(a, b).dispatch(...)")
    body = make(blocks)
    result = Workload(wl.Workload("_".join(part.name for part in sides), body), tensors, schedules[0] if schedules else None)
    result._placed = place(body, tensors)
    return result


def embed(returned: object) -> None:
    """Put a workload that a body returns into that body, unless it has been made there: values of other places are meant to be run."""
    if not isinstance(returned, Workload) or stands_here(returned._placed):
        return
    if returned.schedule != Schedule():
        raise WorkloadStructureError("a part of a workload has a schedule of its own", here(), found=repr(returned.schedule),
                                     help="schedule the whole: program().dispatch(...)")
    if returned._placed is not None:
        unplace(returned._placed)
    place(returned._node.body, returned._tensors)


def _as_workload(how: str, part: object) -> Workload:
    if isinstance(part, Workload):
        return part
    uncalled = isinstance(part, WorkloadFunction)
    raise WorkloadStructureError(f"{how} takes workloads", here(), found=repr(part),
                                 help="call the function: it returns the workload" if uncalled else None)
