"""The functional forms: loops, branches and tasks as functions of functions, the same IR as `for … in P(…)` and `with P.when(…)`.

In a workload they write where they stand; outside one they return a workload of their own.

>>> w = parallel_for(batch, lambda b: task(attn, [b], {"q": Q[b], "out": O[b]}))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

from pto_wsp.api.kernels.kernel import Kernel
from pto_wsp.api.workloads.workload import Workload, embed
from pto_wsp.errors import ArgumentKindError, WorkloadStructureError
from pto_wsp.expr import workload as wl
from pto_wsp.expr.rewrite import outer_nodes
from pto_wsp.frontend.workload.branches import run_branch
from pto_wsp.frontend.workload.loops import P
from pto_wsp.frontend.workload.task_call import call_kernel
from pto_wsp.frontend.workload.trace import MadeTask, TaskHandle, place_last, running_trace, trace_workload
from pto_wsp.source import here
from pto_wsp.types.axes.sparse import Sparse
from pto_wsp.types.tensor import Tensor


class TaskForm(Workload, MadeTask):
    """What `task(…)` returns: a workload of one task, which `after=` also takes for the task."""

    __slots__ = ("_handle",)

    def __init__(self, node: wl.Workload, tensors: Mapping[int, Tensor], handle: TaskHandle) -> None:
        super().__init__(node, tensors)
        self._handle = handle

    @property
    def handle(self) -> TaskHandle:
        """The task's handle."""
        return self._handle


def parallel_for(axis: object, body: Callable[..., object], *, names: Sequence[str] | None = None) -> Workload:
    """Loop over an axis, iterations unordered: `parallel_for(batch, lambda b: k[b](…))`. The variable is called as the parameter.

    Raises: W102 for a body that does not take the loop's variable (a whole Sparse has two), and as `P(axis)`.
    """
    return _loop("parallel_for", P, axis, body, names)


def for_each(axis: object, body: Callable[..., object], *, names: Sequence[str] | None = None) -> Workload:
    """Loop over an axis in order, as `P.seq(axis)`."""
    return _loop("for_each", P.seq, axis, body, names)


def select(row: object, body: Callable[..., object], *, names: Sequence[str] | None = None) -> Workload:
    """Walk the columns of a sparse row, or rows and columns of a whole Sparse, as `P.sel(row)`."""
    return _loop("select", P.sel, row, body, names)


def cond(condition: object, then: Callable[[], object] | Workload, otherwise: Callable[[], object] | Workload | None = None) -> Workload:
    """Run one body where a condition holds, another where it does not, as `P.when` and `P.otherwise`.

    Bodies are functions without parameters, or workloads; a `cond` in `otherwise` asks a second condition.
    Raises: W102 for other bodies, and as `P.when(condition)`.
    """
    sides = [_side("then", then), *(() if otherwise is None else (_side("otherwise", otherwise),))]

    def write() -> None:
        run_branch("P.when", sides[0], condition)
        if len(sides) > 1:
            run_branch("P.otherwise", sides[1])

    return _form("cond", write)


def task(kernel: Kernel, indices: Sequence[object] = (), arguments: Sequence[object] | Mapping[str, object] = (), *,
         after: object = ()) -> TaskForm:
    """Make one task, as `kernel[indices](*arguments, after=after)`; arguments go by position or, in a dict, by name.

    Raises: T205 for what is no kernel, and as a kernel's call.
    """
    if not isinstance(kernel, Kernel):
        raise ArgumentKindError("task takes a kernel", here(), expected="what @kernel returns",
                                found=type(kernel).__name__)
    if isinstance(indices, str) or not isinstance(indices, Iterable):
        raise ArgumentKindError("task takes the indices as a list", here(), expected="[b, t]", found=repr(indices))
    if not isinstance(arguments, Mapping) and (isinstance(arguments, str) or not isinstance(arguments, Iterable)):
        raise ArgumentKindError("task takes the arguments as a list, or a dict by name", here(), found=f"{arguments!r:.60}")
    by_name = dict(arguments) if isinstance(arguments, Mapping) else {}
    positional = () if isinstance(arguments, Mapping) else tuple(arguments)
    made: list[TaskHandle] = []
    written = _form(kernel.name, lambda: made.append(call_kernel(kernel._definition, tuple(indices), positional, by_name, after)))
    result = TaskForm(written._node, written._tensors, made[0])
    result._placed = written._placed
    return result


def _loop(how: str, walk: Callable[..., Iterator[Any]], axis: object, body: object, names: Sequence[str] | None) -> Workload:
    if isinstance(body, Workload) or not callable(body):
        raise WorkloadStructureError(f"the body of {how} is a function of the loop's variable", here(),
                                     found=f"{type(body).__name__}: {body!r:.60}", help=f"{how}(axis, lambda b: ...)")
    wanted = 2 if isinstance(axis, Sparse) else 1
    found = _parameters(body)
    if len(found) != wanted:
        raise WorkloadStructureError(f"the body of {how} takes the loop variable{'s' * (wanted > 1)}", here(),
                                     expected=f"{wanted} parameter{'s' * (wanted > 1)}", found=str(signature(body)))

    def write() -> None:
        for variable in walk(axis, names=names or found):
            embed(body(*variable) if wanted > 1 else body(variable))

    return _form(how, write)


def _side(which: str, body: object) -> Callable[[], None]:
    """Return what writes one side of a branch."""
    if isinstance(body, Workload):
        return lambda: embed(body)
    if not callable(body) or _parameters(body):
        raise WorkloadStructureError(f"the `{which}` of cond is a function without parameters, or a workload", here(),
                                     found=f"{type(body).__name__}: {body!r:.60}", help="cond(c, lambda: ..., lambda: ...)")
    return lambda: embed(body())


def _parameters(body: Callable[..., object]) -> tuple[str, ...]:
    """Return the names of the positional parameters that a call must give."""
    return tuple(p.name for p in signature(body).parameters.values()
                 if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD) and p.default is Parameter.empty)


def _form(how: str, write: Callable[[], object]) -> Workload:
    """Let `write` add one item: to the workload being traced, or to one of its own."""
    trace = running_trace()
    if trace is None:
        node, trace = trace_workload(how, write)
        return Workload(wl.Workload(_name_of(node.body, how), node.body), trace.tensors)
    write()
    placed = place_last(trace)
    result = Workload(wl.Workload(how, wl.Block((placed.item,))), trace.tensors)
    result._placed = placed
    return result


def _name_of(body: wl.Block, how: str) -> str:
    """Return the name of the first kernel, or of the form: a workload made of functions has no name of its own."""
    return next((node.kernel.name for node in outer_nodes(body) if isinstance(node, wl.Task)), how)
