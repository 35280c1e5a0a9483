"""Lower single statements of the C orchestrator: what precedes a node, a task, a tensor of a body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pto_wsp.c import syntax as c
from pto_wsp.c.orchestrator_names import ALL_TASKS, STATUS, CNames
from pto_wsp.ir.kernel import Role
from pto_wsp.ir.mesh import ranks_of_task
from pto_wsp.ir.plan import Check, ElementRead, Place, PlanFresh, Precondition, Submit
from pto_wsp.ir.waits import HandleUses


def allocate(item: PlanFresh, names: CNames, after: str | None) -> Iterator[c.Stmt]:
    """Yield the statements that allocate a tensor of a body."""
    ref = names.plan.tensors[item.tensor].ref
    yield from names.declare("pto_tensor", names.tensors[ref.id], c.Braces((c.Int(0),), "pto_tensor"))
    yield from ready(item.note, names, after)
    sizes = tuple(map(names.scalar, item.sizes)) or tuple(map(c.Int, ref.shape))
    dims: c.Expr = c.Braces(sizes, "const int64_t[]") if sizes else c.Int(0)
    made = c.Call("sink->fresh", (c.Name("sink"), names.tensor(ref), c.Int(ref.dtype.nbytes), c.Int(ref.rank), dims))
    yield c.If(made, (c.Return(STATUS),))


def release(item: PlanFresh, names: CNames) -> Iterator[c.Stmt]:
    """Yield the statements that release a tensor at the end of its body; the sink keeps it for tasks that have yet to run."""
    given = c.Call("sink->release", (c.Name("sink"), names.tensor(names.plan.tensors[item.tensor].ref)))
    yield c.If(given, (c.Return(STATUS),))


WAITED = "waited"    # variable of the last wait's node: later tasks of the stream depend on the elements that it read


def ready(note: Precondition, names: CNames, after: str | None,
          behind: Sequence[c.Expr] = ()) -> Iterator[c.Stmt]:
    """Yield the checks and waits that must precede the evaluation of a node's scalars.

    `after`, `behind`: nodes that the statement waits for anyway.
    """
    order = (*(() if after is None else (names.ref(after),)), *behind)
    for step in names.reads.preparation(note):
        if isinstance(step, Check):
            yield from names.checks((step,))
        else:
            yield c.Block(tuple(_wait(step, names, order)))


def _wait(reads: tuple[ElementRead, ...], names: CNames, order: tuple[c.Expr, ...]) -> Iterator[c.Stmt]:
    yield c.Declare("pto_arg", "reads", array=(len(reads),))
    one = c.Int(1)
    for k, read in enumerate(reads):
        ref = names.plan.tensors[read.slot].ref
        place = c.Prefix("&", c.Index(c.Name("reads"), c.Int(k)))
        yield c.Evaluate(c.Call("pto_bind", (place, names.tensor(ref), names.scalar(read.offset), one, one, one, one, c.Name("PTO_READ"),
                                             c.Int(ref.dtype.nbytes))))
    nodes: c.Expr = c.Braces(order, "const int64_t[]") if order else c.Int(0)
    node = names.ref(WAITED)
    yield c.Assign(node, c.Call("pto_wait", (c.Name("sink"), names.stream, c.Name("reads"), c.Int(len(reads)), nodes, c.Int(len(order)))))
    yield c.If(c.Infix("<", node, c.Int(0)), (c.Return(STATUS),))


def submit(task: Submit, names: CNames, handles: HandleUses, after: str | None) -> Iterator[c.Stmt]:
    """Yield the statements that submit one task; `after`: the variable of the node that the task waits for and replaces."""
    behind = tuple(names.ref(handle.variable) for handle in handles.waits(task.site))
    yield from ready(task.note, names, after, behind)
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
        "position": names.scalar(task.position), "bytes": names.scalar(task.traffic),
        "ranks": names.scalar(ranks_of_task(task.on))}
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


def _bind(names: CNames, position: int, place: Place, role: Role) -> c.Expr:
    slot = names.plan.tensors[place.slot]
    flags = " | ".join(flag for flag, on in (("PTO_READ", role.reads), ("PTO_WRITE", role.writes),
                                             ("PTO_KEPT", role.writes and slot.kept)) if on)
    target = c.Prefix("&", c.Index(c.Name("args"), c.Int(position)))
    tensor = names.tensor(slot.ref)
    return c.Call("pto_bind", (target, tensor, names.scalar(place.offset), *(names.scalar(n) for n in place.extent),
                               *(names.scalar(n) for n in place.stride), c.Name(flags), c.Int(slot.ref.dtype.nbytes)))
