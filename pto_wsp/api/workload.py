"""Define `@workload` and the workloads it returns: immutable typed expressions with a fluent interface to a program."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from pto_wsp import doors
from pto_wsp.calls import bind, user_call, user_calls
from pto_wsp.errors import (
    ArityError,
    DataFormatError,
    LoopVariableError,
    MeshError,
    PtoError,
    UnknownNameError,
    WorkloadDepthError,
    WorkloadStructureError,
)
from pto_wsp.ir import codec, flow
from pto_wsp.ir import workload as wl
from pto_wsp.ir.mesh import Mesh, OverRanks
from pto_wsp.ir.rewrite import Canonical, canonical, free_handles, free_vars, with_fresh_ids
from pto_wsp.ir.tensor import Tensor
from pto_wsp.ir.text import print_workload
from pto_wsp.ir.traffic import Collective
from pto_wsp.ir.workload_type import type_of
from pto_wsp.pickling import PickledByName
from pto_wsp.schedule.calendar import Calendar
from pto_wsp.schedule.directives import Deps, Dispatch, Pools, ReadyPolicy, SpatialMap, StartPolicy, TaskWindow, Timing, TracePolicy
from pto_wsp.schedule.keys import KeyLike, trace_key
from pto_wsp.schedule.schedule import Schedule, Scheduled, schedule_of
from pto_wsp.schedule.tunable import tunables_of, usual_value
from pto_wsp.source import here, repeated
from pto_wsp.trace.workload.trace import Placed, place, stands_here, trace_workload, unplace
from pto_wsp.wording import counted, nearest

if TYPE_CHECKING:
    from pto_wsp.api.compiling import Lowered
    from pto_wsp.api.program import Program
    from pto_wsp.run.task_list import TaskList

# what compile() takes as `passes`: a strategy, a list of names and Pass values, functions by the names of passes
Passes: TypeAlias = str | Sequence[object] | Mapping[str, Callable[..., object]] | None


_LONGEST_REPR = 200


@user_calls()
class Workload(Scheduled, doors.Displayed):
    """A workload and its schedule. Every method returns a new value; the order of directives does not matter."""

    __slots__ = ("_moves", "_node", "_placed", "_renumbered", "_tensors")

    def __init__(self, node: wl.Workload, tensors: Mapping[int, Tensor], schedule: Schedule | None = None) -> None:
        self._node = node
        self._renumbered: Canonical | None = None
        self._tensors = dict(tensors)
        self._placed: Placed | None = None
        self._moves: tuple[Collective, ...] = ()
        self.schedule = schedule or Schedule()

    if not TYPE_CHECKING:    # a type checker would take any name for one of a workload's
        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(name)
            near = nearest(name, dir(Workload))
            help = f"did you mean {near}?" if near else None
            if hasattr(doors.late_module("pto_wsp.api.program").Program, name):
                help = f"compile it first: program = {self.name}().compile(); program.{name}"
            raise UnknownNameError(f"a workload has no `{name}`", here(), help=help)

    # -- the expression ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._node.name

    @property
    def node(self) -> wl.Workload:
        """The expression: frozen, comparable, without buffers."""
        return self._canonical.workload

    @property
    def ir(self) -> wl.Workload:
        """The expression, as `node`: `str` prints the whole of it, kernels included, and `pto_wsp.parse` reads the text back."""
        return self.node

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors of the workload, in the order of their ids in `node`; None for a workload from JSON or text, which has no buffers."""
        return tuple(self._tensors.get(number) for number in self._canonical.tensors)

    @property
    def mesh(self) -> Mesh | None:
        """The mesh whose ranks run the tasks; None for a workload without a mesh."""
        return next((Mesh.of(task.on.mesh) for task in wl.tasks(self._node.body) if task.on is not None), None)

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives of the workload with the bytes that they send, in program order; () for a workload from JSON."""
        return self._moves

    @property
    def type(self) -> str:
        """The axes, tasks and kind, in lines of at most 100 columns: `Workload[batch: Dense[4] → k(x: In, y: Out), Independent]`."""
        return type_of(self.node)

    def tasks(self, /, **sizes: object) -> TaskList:
        """Return the tasks of a small workload in program order, each with its indices and regions, without running them.

        `sizes`: symbols, axes and tensors by name, as for `run`.
        Raises: R102, R113 and R114 for what does not fit, R115 for more than 1000 tasks, R103 where tasks decide which tasks there are.
        """
        return doors.tasks_of(self._canonical, self._tensors, sizes)

    def to_json(self) -> str:
        """Return the expression as JSON; `Workload.from_json` reads it and requires bindings."""
        return codec.dumps(self.node)

    @staticmethod
    def from_json(text: str, *, bodies: bool = False) -> Workload:
        """Return the workload that `to_json` wrote. Its tensors have no buffers: bind them by name for a run.

        The text is data, checked by the rules of traced workloads. `bodies`: take kernels with a body in C or C++ too,
        which runs as code when the workload does.
        Raises: W113 for text that is no workload; K107 for a body in C or C++ without `bodies`.
        """
        node = codec.loads(text)
        if not isinstance(node, wl.Workload):
            raise DataFormatError("this JSON is not a workload", here(), found=type(node).__name__)
        doors.check_workload(node, bodies=bodies)
        return Workload(node, {})

    def __eq__(self, other: object) -> bool:
        if isinstance(other, wl.Workload):   # the value that eval(repr(w)) gives
            return self.node == canonical(other).workload and self.schedule == Schedule()
        return isinstance(other, Workload) and (self.node, self.schedule) == (other.node, other.schedule)

    def __hash__(self) -> int:
        return hash(self.node)

    def __repr__(self) -> str:
        calls = [task.kernel.name for task in wl.tasks(self._node.body)]
        kernels = counted(len(set(calls)), "kernel")
        said = ", ".join(name for name, _ in self.schedule.directives())
        text = f"Workload({self.name}: {counted(len(calls), 'call')} of {kernels}{f'; {said}' if said else ''})"
        return text if len(text) <= _LONGEST_REPR else f"{text[:_LONGEST_REPR - 2]}…)"

    def __str__(self) -> str:
        return print_workload(self.node)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    @property
    def card(self) -> Any:
        """The data of the workload's notebook view: loops with their sizes, and kernel calls with what they read and write."""
        arrays = {number: tensor.data for number, tensor in enumerate(self.tensors) if tensor is not None}
        return doors.late_module("pto_wsp.view.workload_cards").workload_card(self.node, self.schedule, arrays)

    @property
    def _canonical(self) -> Canonical:
        if self._renumbered is None:
            self._renumbered = canonical(self._node)
        return self._renumbered

    # -- composition ---------------------------------------------------------------------------------------------------

    def __rshift__(self, other: Workload) -> Workload:
        return sequential(self, other)

    def __or__(self, other: Workload) -> Workload:
        return combine(self, other)

    # -- schedule ------------------------------------------------------------------------------------------------------

    def dispatch(self, policy: Dispatch) -> Workload:
        """Set the policy that selects each task's home executor."""
        return self._scheduled(self.schedule.saying(dispatch=policy))

    def streams(self, n: int) -> Workload:
        """Run tasks in n streams."""
        return self._scheduled(self.schedule.saying(streams=n))

    def stream_by(self, key: KeyLike) -> Workload:
        """Set the key that selects each task's stream."""
        return self._scheduled(self.schedule.having(stream_by=trace_key(key, "stream_by")))

    def timing(self, policy: Timing) -> Workload:
        """Set the policy for releasing submitted tasks."""
        return self._scheduled(self.schedule.saying(timing=policy))

    def task_graph(self, *, deps: Deps | None = None, window: TaskWindow | Sequence[TaskWindow] | None = None, pools: Pools | None = None,
                   ready: ReadyPolicy | None = None, start: StartPolicy | None = None, trace: TracePolicy | None = None) -> Workload:
        """Derive edges from data instead of structure, and bound the graph. Fields merge with those of an earlier task_graph."""
        return self._scheduled(self.schedule.with_task_graph(deps=deps, window=window, pools=pools, ready=ready, start=start,
                                                             trace=trace))

    def calendar(self, plan: KeyLike | Sequence[Sequence[int]] | Calendar) -> Workload:
        """Set each task's executor and position: by a function of the task, a table of pairs, or a Calendar."""
        return self._scheduled(self.schedule.having(calendar=Calendar.of(plan)))

    def spatial_map(self, grid: Sequence[int], place: KeyLike | None = None) -> Workload:
        """Set the core of a grid of rows and columns on which each task runs: `spatial_map((2, 3), lambda t: (t.i % 2, t.j % 3))`.

        What a task of another core needs arrives later, by `arch.hop_cycles` for each step between the two. Without `place`, task k runs
        on core k, row by row and round again.
        """
        return self._scheduled(self.schedule.having(spatial_map=SpatialMap.of(grid, place)))

    def under(self, schedule: Schedule) -> Workload:
        """Return the workload with a whole schedule, such as that of freeze() or auto_schedule(), which replaces the directives set so far.

        Raises: S102 for a value that is not a schedule.
        """
        return self._scheduled(schedule_of(schedule, self.node))

    def named(self, name: str) -> Workload:
        """Set the name of the schedule."""
        return self._scheduled(self.schedule.saying(name=name))

    def _scheduled(self, schedule: Schedule) -> Workload:
        scheduled = Workload(self._node, self._tensors, schedule)
        scheduled._renumbered = self._renumbered
        scheduled._moves = self._moves
        scheduled._placed = self._placed   # the same tasks: a combinator removes them from their place
        return scheduled

    # -- compiling -----------------------------------------------------------------------------------------------------

    def compile(self, target: str = "cpu_sim", arch: object = None, strict: bool = True,
                passes: Passes = None, *, mesh: Mesh | None = None, comm: object = None, peer_timeout: float = 300.0,
                **options: object) -> Program:
        """Return the program: lowered, checked and built.

        `target` is cpu_sim (C on this machine's CPU), interp (NumPy, the oracle) or a device target. `arch` is the model whose cycles are
        simulated. `strict` refuses directives that the target does not enforce; otherwise they are recorded, with one warning.

        `passes` is a strategy ("default", "clean", "none"), a list of the passes that run (names and Pass values), or functions
        (IR, context) -> IR that replace the passes of these names. `options` are fields of CompileOptions.

        `mesh`: the mesh of the workload, whose ranks are groups of executors of this process; it may be left out.

        `comm`: a communicator of mpi4py, as many processes as the mesh has ranks, each of which runs its rank's part; all of them compile
        and run the same programs in the same order. A rank that waits longer than `peer_timeout` seconds for a message ends with M106.

        Raises: C101 to C105, C113, C114, C117, S101, S103, T301 and W104; M102 for another mesh than the workload's, or a communicator that
        does not fit; M106 and M107 for ranks that fail or differ.
        """
        self._refuse_parts()
        if mesh is not None and mesh != self.mesh:
            raise MeshError(f"workload `{self.name}` is not over this mesh", here(), found=f"{mesh!r:.80}",
                            expected="no mesh: none of its tasks is on a rank" if self.mesh is None else repr(self.mesh))
        compile_program, _ = doors.program_makers()
        _check_timeout(peer_timeout)
        ranks = None if comm is None else OverRanks(comm, peer_timeout, self.mesh, {move.span: move.name for move in self._moves})
        try:
            return compile_program(self._canonical, self._tensors, self.schedule, ranks, target=target, arch=arch, strict=strict,
                                   passes=passes, options=options, texts=self._texts() if options.get("dump") is True else {})
        except PtoError as problem:
            self._reword(problem)
            raise
        except RecursionError as problem:
            raise _too_deep(f"compiling workload `{self.name}`", problem) from None

    def lower(self, target: str = "cpu_sim", until: str | None = None, arch: object = None, strict: bool = True,
              passes: Passes = None, **options: object) -> Lowered:
        """Return the IR after a pass of the target, to print. Nothing is generated, and the plan is not checked.

        `until` is the name of a pass that `pto-wsp passes` lists; None selects the last. The rest is as for `compile`.

        Raises: C114 for a name that no pass of the target has, C117 for one that `passes` leaves out; the errors of `compile` up to there.
        """
        self._refuse_parts()
        _, lower_program = doors.program_makers()
        try:
            return lower_program(self._canonical, self._tensors, self.schedule, until, target=target, arch=arch, strict=strict,
                                 passes=passes, options=options)
        except PtoError as problem:
            self._reword(problem)
            raise
        except RecursionError as problem:
            raise _too_deep(f"lowering workload `{self.name}`", problem) from None

    def _reword(self, problem: PtoError) -> None:
        """Say a refusal of a target in the words of the level that the workload was lowered from."""

    def _texts(self) -> Mapping[str, str]:
        """Return the texts that dump=True writes of the levels above the workload, by file."""
        return {}

    def _refuse_parts(self) -> None:
        """Check that the workload is not a part of another one.

        Raises: W104 otherwise.
        """
        for var in free_vars(self._node.body):
            raise LoopVariableError(f"loop variable `{var.name}` is used outside its loop", here(),
                                    help="compile the workload that has the loop; this one is a part of its body")
        for node in free_handles(self._node.body):
            raise LoopVariableError("after= names a task that is not part of this workload", node.span,
                                    help="compile the workload that has both tasks")


@user_calls(leave_out=("__call__",))
class WorkloadFunction(PickledByName):
    """The result of `@workload`: a call traces the function's body once and returns the Workload."""

    def __init__(self, function: Callable[..., object]) -> None:
        if not inspect.isfunction(function) or inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise WorkloadStructureError("a workload is a plain function", here(), expected="def name(...): ...", found=repr(function),
                                         help="yield, async and await have no meaning in it")
        self._function = function
        self._usual = {name: tunable.default for name, tunable in tunables_of(function).items()}
        self._signature = inspect.signature(function)
        functools.update_wrapper(self, function)

    def __call__(self, /, *args: object, **kwargs: object) -> Workload:
        """Trace the function with these arguments and return its workload.

        A Tunable that is not passed has its first value. Inside another workload, the tasks also become part of that workload.
        """
        bind(self._function.__name__, self._signature, args, kwargs)
        if self._usual:
            bound = self._signature.bind_partial(*args, **kwargs).arguments
            kwargs = {**{name: value for name, value in self._usual.items() if name not in bound}, **kwargs}
        args = tuple(usual_value(value) for value in args)
        kwargs = {name: usual_value(value) for name, value in kwargs.items()}
        try:
            node, trace = trace_workload(self._function.__name__, lambda: embed(self._function(*args, **kwargs)))
        except RecursionError as problem:
            raise _too_deep(f"workload `{self._function.__name__}`", problem) from None
        workload = Workload(node, trace.tensors)
        workload._moves = tuple(move for move in trace.ranks.moves if isinstance(move, Collective))
        workload._placed = place(node.body, trace.tensors)
        return workload

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        called = self.__dict__.get("__name__", "it")
        raise UnknownNameError(f"the function of workload `{called}` has no `{name}`", here(),
                               expected=f"{called}(), which returns the Workload",
                               help=f"call it first: {called}().{name}" if hasattr(Workload, name) else None)

    def __repr__(self) -> str:
        return f"workload {self._function.__name__}"


def _check_timeout(timeout_s: object) -> None:
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not timeout_s > 0:
        raise MeshError("peer_timeout is no time", here(), expected="seconds, above 0", found=f"{timeout_s!r:.60}")


def _too_deep(what: str, problem: RecursionError) -> WorkloadStructureError:
    """Return the error for code that exceeds Python's recursion limit."""
    again = repeated(problem)
    found = None if again is None else f"`{again[0]}` calls itself"
    return WorkloadDepthError(f"{what} goes deeper than Python's recursion limit", here() if again is None else again[1], found=found,
                              help="a workload is traced once: recursion needs a Python number that ends it; "
                                   f"sys.setrecursionlimit({2 * sys.getrecursionlimit()}) allows more")


@user_call()
def workload(function: Callable[..., object]) -> WorkloadFunction:
    """Decorate a function as a workload. Its parameters can be axes, tensors, numbers and other workloads."""
    return WorkloadFunction(function)


@user_call()
def sequential(*parts: Workload) -> Workload:
    """Return the workloads one after another, in program order."""
    return _combine_blocks("sequential", parts, _in_sequence)


@user_call()
def combine(*parts: Workload) -> Workload:
    """Return the workloads side by side, without an order between them."""
    return _combine_blocks("combine", parts, _side_by_side)


def _in_sequence(blocks: Sequence[wl.Body]) -> wl.Body:
    """Return a body of blocks. A block that only contains blocks is flattened, so that a >> b >> c is as deep as a >> b."""
    return flow.Sequence(tuple(part for block in blocks for part in
                          (block.items if block.items and all(isinstance(item, flow.Sequence) for item in block.items) else (block,))))


def _side_by_side(blocks: Sequence[wl.Body]) -> wl.Body:
    """Return a body of sides. A block that only contains sides is flattened, so that a | b | c is as deep as a | b."""
    sides: list[wl.Body] = []
    for block in blocks:
        match block.items:
            case (flow.Sides(inner),):
                sides += inner
            case _:
                sides.append(block)
    return flow.Sequence((flow.Sides(tuple(sides)),))


def _combine_blocks(how: str, parts: Sequence[object], make: Callable[[Sequence[wl.Body]], wl.Body]) -> Workload:
    if not parts:
        raise ArityError(f"{how} takes at least one workload", here())
    sides = tuple(_as_workload(how, part) for part in parts)
    blocks: list[wl.Body] = []
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
    result._moves = tuple(move for part in sides for move in part._moves)
    result._placed = place(body, tensors)
    return result


def embed(returned: object) -> None:
    """Append the workload that a body returns to the items of the body, unless the body itself has created the workload."""
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
