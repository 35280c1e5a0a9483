"""Define the functional forms of loops, branches and tasks; their IR is that of `for … in P(…)` and `with P.when(…)`.

Inside a workload they add to it. Outside, they return a separate workload.

>>> w = parallel_for(batch, lambda b: task(attn, [b], {"q": Q[b], "out": O[b]}))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

from pto_wsp.api.kernel import Kernel
from pto_wsp.api.workload import Workload, embed
from pto_wsp.calls import user_call
from pto_wsp.errors import ArgumentKindError, WorkloadStructureError
from pto_wsp.ir import flow
from pto_wsp.ir import workload as wl
from pto_wsp.ir.axes import Sparse
from pto_wsp.ir.tensor import Tensor
from pto_wsp.source import here
from pto_wsp.trace.workload.loops import P, run_branch
from pto_wsp.trace.workload.task_call import call_kernel
from pto_wsp.trace.workload.trace import MadeTask, TaskHandle, place_last, running_trace, trace_workload


class TaskForm(Workload, MadeTask):
    """The result of `task(…)`: a workload of one task, which `after=` also accepts as the task."""

    __slots__ = ("_handle",)

    def __init__(self, node: wl.Workload, tensors: Mapping[int, Tensor], handle: TaskHandle) -> None:
        super().__init__(node, tensors)
        self._handle = handle

    @property
    def handle(self) -> TaskHandle:
        """The task's handle."""
        return self._handle


@user_call("parallel_for")
def parallel_for(axis: object, body: Callable[..., object], *, names: Sequence[str] | None = None) -> Workload:
    """Loop over an axis with unordered iterations: `parallel_for(batch, lambda b: k[b](…))`. The parameter names the loop variable.

    Raises: W102 for a body whose parameters are not the loop's variables (a whole Sparse has two); the errors of `P(axis)`.
    """
    return _loop("parallel_for", P, axis, body, names)


@user_call("for_each")
def for_each(axis: object, body: Callable[..., object], *, names: Sequence[str] | None = None) -> Workload:
    """Loop over an axis in order, like `P.seq(axis)`."""
    return _loop("for_each", P.seq, axis, body, names)


@user_call("select")
def select(row: object, body: Callable[..., object], *, names: Sequence[str] | None = None) -> Workload:
    """Iterate over the columns of a sparse row, or the rows and columns of a whole Sparse, like `P.sel(row)`."""
    return _loop("select", P.sel, row, body, names)


@user_call("cond")
def cond(condition: object, then: Callable[[], object] | Workload, otherwise: Callable[[], object] | Workload | None = None) -> Workload:
    """Run one body if a condition holds and another if it does not, like `P.when` and `P.otherwise`.

    Bodies are functions without parameters, or workloads. A `cond` in `otherwise` tests a second condition.

    Raises: W102 for other bodies; the errors of `P.when(condition)`.
    """
    sides = [_side("then", then), *(() if otherwise is None else (_side("otherwise", otherwise),))]

    def write() -> None:
        run_branch("P.when", sides[0], condition)
        if len(sides) > 1:
            run_branch("P.otherwise", sides[1])

    return make_form("cond", write)


@user_call("task")
def task(kernel: Kernel, indices: Sequence[object] = (), arguments: Sequence[object] | Mapping[str, object] = (), *,
         after: object = (), label: str | None = None) -> TaskForm:
    """Add one task, like `kernel[indices](*arguments, after=after, label=label)`. Arguments are positional, or a dict by name.

    Raises: T205 for a value that is not a kernel; the errors of a kernel call.
    """
    if not isinstance(kernel, Kernel):
        raise ArgumentKindError("task takes a kernel", here(), expected="what @kernel returns",
                                found=f"{type(kernel).__name__}: {kernel!r:.60}" if isinstance(kernel, str) else type(kernel).__name__,
                                help="a kernel's name alone says nothing of its parameters: pass the function that @kernel decorates"
                                if isinstance(kernel, str) else None)
    if isinstance(indices, str) or not isinstance(indices, Iterable):
        raise ArgumentKindError("task takes the indices as a list", here(), expected="[b, t]", found=repr(indices))
    if not isinstance(arguments, Mapping) and (isinstance(arguments, str) or not isinstance(arguments, Iterable)):
        raise ArgumentKindError("task takes the arguments as a list, or a dict by name", here(), found=f"{arguments!r:.60}")
    by_name = dict(arguments) if isinstance(arguments, Mapping) else {}
    positional = () if isinstance(arguments, Mapping) else tuple(arguments)
    handles: list[TaskHandle] = []
    written = make_form(kernel.name, lambda: handles.append(call_kernel(kernel._definition, tuple(indices), positional, by_name, after,
                                                                       label)), "a kernel")
    result = TaskForm(written._node, written._tensors, handles[0])
    result._placed = written._placed
    return result


def _loop(how: str, walk: Callable[..., Iterator[Any]], axis: object, body: object, names: Sequence[str] | None) -> Workload:
    if isinstance(body, Workload) or not callable(body):
        raise WorkloadStructureError(f"the body of {how} is a function of the loop's variable", here(),
                                     found=f"{type(body).__name__}: {body!r:.60}", help=f"{how}(axis, lambda b: ...)")
    n_variables = 2 if isinstance(axis, Sparse) else 1
    parameters = _parameters(body)
    if len(parameters) != n_variables:
        raise WorkloadStructureError(f"the body of {how} takes the loop variable{'s' * (n_variables > 1)}", here(),
                                     expected=f"{n_variables} parameter{'s' * (n_variables > 1)}", found=str(signature(body)))

    def write() -> None:
        for variable in walk(axis, names=names or parameters):
            embed(body(*variable) if n_variables > 1 else body(variable))

    return make_form(how, write)


def _side(which: str, body: object) -> Callable[[], None]:
    """Return a function that adds one side of a branch."""
    if isinstance(body, Workload):
        return lambda: embed(body)
    if not callable(body) or _parameters(body):
        raise WorkloadStructureError(f"the `{which}` of cond is a function without parameters, or a workload", here(),
                                     found=f"{type(body).__name__}: {body!r:.60}", help="cond(c, lambda: ..., lambda: ...)")
    return lambda: embed(body())


def _parameters(body: Callable[..., object]) -> tuple[str, ...]:
    """Return the names of the positional parameters without defaults."""
    return tuple(p.name for p in signature(body).parameters.values()
                 if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD) and p.default is Parameter.empty)


def make_form(how: str, write: Callable[[], object], what: str = "a word of workloads") -> Workload:
    """Run `write`, which adds items, in the workload being traced or in a separate one, and return the items as a workload.

    `what`: what `how` names, for an error.

    Raises: K105 in the body of a kernel or a function on tensors.
    """
    trace = running_trace()
    if trace is None:
        node, trace = trace_workload(how, write, what)
        return Workload(wl.Workload(_name_of(node.body, how), node.body), trace.tensors)
    before = len(trace.scopes[-1].items)
    write()
    placed = place_last(trace, before)
    result = Workload(wl.Workload(how, flow.Sequence(placed.items)), trace.tensors)
    result._placed = placed
    return result


def _name_of(body: wl.Body, how: str) -> str:
    """Return the name of the first kernel, or of the form: a workload from functional forms has no function name."""
    return next((task.kernel.name for task in wl.tasks(body)), how)
