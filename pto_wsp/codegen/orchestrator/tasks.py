"""One task in C: its arguments bound, its order gathered, submitted to the sink."""

from __future__ import annotations

from collections.abc import Iterator

from pto_wsp.codegen.c import syntax as c
from pto_wsp.codegen.orchestrator.names import STATUS, Names
from pto_wsp.codegen.orchestrator.variables import ALL_TASKS
from pto_wsp.codegen.orchestrator.waits import WAITED, ready
from pto_wsp.expr.kernel import Role
from pto_wsp.plan.model import Place, Submit
from pto_wsp.plan.waits.handles import HandleUses


def submit(task: Submit, names: Names, handles: HandleUses, after: str | None) -> Iterator[c.Stmt]:
    """Yield what makes one task; `after` is the variable of the node that it waits for and becomes."""
    behind = tuple(names.ref(handle.variable) for handle in handles.waits(task.site))
    yield from ready(task, names, after, behind)
    use = names.plan.kernels[task.kernel]
    n_args = len(task.places)
    if n_args:
        yield c.Declare("pto_arg", "args", array=(n_args,))
    for k, (place, param) in enumerate(zip(task.places, use.kernel.memory_params, strict=True)):
        yield c.Evaluate(_bind(names, k, place, param.role))
    scalars = tuple(names.slot(value.value, value.dtype) for value in task.scalars)
    order = (*(() if after is None else (names.ref(after),)), *((names.ref(WAITED),) if names.reads.slots else ()))
    arrays: list[tuple[str, c.Expr]] = []
    for name, values in (("scalars", scalars), ("index", tuple(names.scalar(i) for i in task.index)), ("order", order),
                         ("behind", behind)):
        if values:
            yield c.Declare("const int64_t", name, c.Braces(values), array=(len(values),))
        arrays.append((name, c.Name(name) if values else c.Int(0)))
    pointers = dict(arrays)
    said: dict[str, c.Expr] = {
        "kernel": c.Int(task.kernel), "site": c.Int(task.site), "worker": names.scalar(task.worker), "cost": names.scalar(task.cost),
        "n_args": c.Int(n_args), "n_scalars": c.Int(len(scalars)), "n_index": c.Int(len(task.index)), "n_order": c.Int(len(order)),
        "args": c.Name("args") if n_args else c.Int(0), "scalars": pointers["scalars"], "index": pointers["index"],
        "order": pointers["order"], "n_after": c.Int(len(behind)), "stream": names.stream, "after": pointers["behind"],
        "lane": names.scalar(task.lane), "pool": names.scalar(task.pool), "priority": names.scalar(task.priority),
        "position": names.scalar(task.position), "bytes": names.scalar(task.traffic)}
    fields = tuple(c.Designated(name, value) for name, value in said.items() if value != c.Int(0) or name in ("kernel", "site"))
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


def _bind(names: Names, position: int, place: Place, role: Role) -> c.Expr:
    slot = names.plan.tensors[place.slot]
    flags = " | ".join(flag for flag, on in (("PTO_READ", role.reads), ("PTO_WRITE", role.writes),
                                             ("PTO_KEPT", role.writes and slot.kept)) if on)
    target = c.Prefix("&", c.Index(c.Name("args"), c.Int(position)))
    tensor = names.tensor(slot.ref)
    return c.Call("pto_bind", (target, tensor, names.scalar(place.offset), *(names.scalar(n) for n in place.extent),
                               *(names.scalar(n) for n in place.stride), c.Name(flags), c.Int(slot.ref.dtype.nbytes)))
