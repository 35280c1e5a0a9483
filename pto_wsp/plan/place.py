"""Pass: give every task its home executor, from the schedule's dispatch."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from pto_wsp.errors import InternalError, KeyTraceError, raise_all
from pto_wsp.plan.model import Context, Submit, TaskPlan
from pto_wsp.plan.own_executors import with_own_executors
from pto_wsp.plan.rules import ExecutionRules
from pto_wsp.plan.walk import map_submits
from pto_wsp.schedule.directives import Affinity, DispatchBy, DispatchSteal, Hash, RoundRobin
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar import Op


def place_tasks(plan: TaskPlan, context: Context) -> TaskPlan:
    """Set `worker` of every task and the plan's number of executors, window and kinds of edges.

    Raises: S103 for a key that names a loop or bracket index which a task does not have.
    """
    dispatch = context.schedule.dispatch
    errors: list[KeyTraceError] = []
    key: s.Scalar | None
    match dispatch:
        case None | DispatchSteal():     # the latter is recorded at most: nothing steals
            executors, key, op = 1, None, Op.MOD
        case RoundRobin(num_aicpus=n):
            executors, key, op = n, s.TaskIndex(), Op.MOD
        case Affinity(key=traced, num_aicpus=n) | DispatchBy(key=traced, num_aicpus=n):
            executors, key, op = n, traced.node, Op.MOD
        case Hash(key=traced, num_aicpus=n):
            executors, key, op = n, traced.node, Op.HASHMOD
        case _:
            assert_never(dispatch)

    if key is None:
        plan, executors = with_own_executors(plan)

    def place(task: Submit) -> Submit:
        if key is None:
            return task
        worker = s.binary(op, _resolve(key, task, errors), s.Const(executors))
        return replace(task, worker=worker)

    placed = map_submits(plan, place)
    raise_all(errors)
    kind = context.schedule.deps.kind
    rules = ExecutionRules(n_workers=executors, window=context.schedule.window.size)
    return replace(placed, rules=rules, infer=kind != "explicit",
                   structure=kind in ("explicit", "hybrid"))


def verify_after_place_tasks(plan: TaskPlan) -> None:
    """Every key is resolved: no name is left in a worker expression."""
    def check(task: Submit) -> Submit:
        if any(isinstance(leaf, s.AxisName | s.BracketIndex) for leaf in s.leaves(task.worker)):
            raise InternalError("a key was not resolved", s.print_scalar(task.worker))
        return task
    map_submits(plan, check)


def _resolve(key: s.Scalar, task: Submit, errors: list[KeyTraceError]) -> s.Scalar:
    """Replace names by the loop variables and bracket indices of one task."""
    def change(node: s.Scalar) -> s.Scalar | None:
        match node:
            case s.AxisName(name):
                for var in reversed(task.loops):
                    if var.name == name:
                        return var
                known = ", ".join(f"t.{var.name}" for var in task.loops) or "none: no loop is around it"
                errors.append(KeyTraceError(f"the schedule's key names `{name}`, which this task does not have", task.span,
                                            expected=known, found=f"t.{name}"))
                return s.Const(0)
            case s.BracketIndex(position):
                if position < task.n_brackets:
                    return task.index[position]
                errors.append(KeyTraceError(f"the schedule's key takes t.params[{position}]", task.span,
                                            expected=f"{task.n_brackets} bracket indices", found=f"params[{position}]"))
                return s.Const(0)
            case _:
                return None
    return s.substitute(key, change)
