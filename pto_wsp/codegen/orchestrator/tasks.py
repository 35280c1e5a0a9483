"""One task in C: its arguments bound, its order gathered, submitted to the sink."""

from __future__ import annotations

from collections.abc import Iterator

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.orchestrator.names import STATUS, Names
from pto_wsp.codegen.orchestrator.variables import ALL_TASKS
from pto_wsp.codegen.orchestrator.waits import WAITED, ready
from pto_wsp.plan.handles import HandleUses
from pto_wsp.plan.model import Place, Submit
from pto_wsp.types.dtype import DType
from pto_wsp.types.scalar import Const


def submit(task: Submit, names: Names, handles: HandleUses, after: str | None) -> Iterator[c.Stmt]:
    """Yield what makes one task; `after` is the variable of the node that it waits for and becomes."""
    behind = tuple(names.ref(handle.variable) for handle in handles.waits(task.site))
    yield from ready(task, names, after, behind)
    use = names.plan.kernels[task.kernel]
    n_args = len(task.places)
    if n_args:
        yield c.Declare("pto_arg", "args", array=(n_args,))
    for k, (place, param) in enumerate(zip(task.places, use.kernel.memory_params, strict=True)):
        dtype = names.plan.tensors[place.slot].ref.dtype
        yield c.Evaluate(_bind(names, k, place, dtype, param.role.reads, param.role.writes))
    scalars = tuple(names.slot(value.value, value.dtype) for value in task.scalars)
    order = (*(() if after is None else (names.ref(after),)), *((names.ref(WAITED),) if names.reads.slots else ()))
    arrays: list[tuple[str, c.Expr]] = []
    for name, values in (("scalars", scalars), ("index", tuple(names.scalar(i) for i in task.index)), ("order", order),
                         ("behind", behind)):
        if values:
            yield c.Declare("const int64_t", name, c.Braces(values), array=(len(values),))
        arrays.append((name, c.Name(name) if values else c.Int(0)))
    pointers = dict(arrays)
    fields: tuple[c.Expr, ...] = (
        c.Int(task.kernel), c.Int(task.site), names.scalar(task.worker), names.scalar(task.cost), c.Int(n_args),
        c.Int(len(scalars)), c.Int(len(task.index)), c.Int(len(order)), c.Name("args") if n_args else c.Int(0),
        pointers["scalars"], pointers["index"], pointers["order"], c.Int(len(behind)), names.stream, pointers["behind"],
        *_said(task, names))
    yield c.Declare("const pto_task", "task", c.Braces(fields))
    yield c.Declare("const int64_t", "node", c.Call("sink->submit", (c.Name("sink"), c.Prefix("&", c.Name("task")))))
    yield c.If(c.Infix("<", c.Name("node"), c.Int(0)), (c.Return(STATUS),))
    yield c.Assign(names.task_index, c.Int(1), "+=")
    frame = names.variables.frame
    if frame is not None and frame.records:
        yield c.If(c.Call("sink->join_add", (c.Name("sink"), names.ref(ALL_TASKS), c.Name("node"))), (c.Return(STATUS),))
    if after is not None:
        yield c.Assign(names.ref(after), c.Name("node"))
    for handle in handles.collects(task.site):
        added = c.Call("sink->join_add", (c.Name("sink"), names.ref(handle.variable), c.Name("node")))
        yield c.If(added, (c.Return(STATUS),))


def _said(task: Submit, names: Names) -> tuple[c.Expr, ...]:
    """Return what the schedule says of a task beside its worker; nothing where it is silent, which C takes for zeros."""
    said = (task.lane, task.pool, task.priority, task.position, task.traffic)
    return () if all(value == Const(0) for value in said) else tuple(names.scalar(value) for value in said)


def _bind(names: Names, position: int, place: Place, dtype: DType, reads: bool, writes: bool) -> c.Expr:
    flags = " | ".join(flag for flag, on in (("PTO_READ", reads), ("PTO_WRITE", writes)) if on)
    target = c.Prefix("&", c.Index(c.Name("args"), c.Int(position)))
    tensor = names.tensor(names.plan.tensors[place.slot].ref)
    return c.Call("pto_bind", (target, tensor, names.scalar(place.offset), *(names.scalar(n) for n in place.extent),
                               *(names.scalar(n) for n in place.stride), c.Name(flags), c.Int(dtype.nbytes)))
