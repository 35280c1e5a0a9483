"""Without a dispatch, the main program and every replica of a process have an executor of their own."""

from __future__ import annotations

from dataclasses import replace

from pto_wsp.plan.model import Item, Pipeline, Process, Submit, TaskPlan
from pto_wsp.plan.walk import inner_items, items_of, map_sequence
from pto_wsp.types import scalar as s


def with_own_executors(plan: TaskPlan, most: int | None = None) -> tuple[TaskPlan, int]:
    """Return the plan with `worker` of every task set, and the number of executors: streams without tasks have none.

    `most`: of executors, of which processes then share some; None: no bound.
    """
    first: dict[int, int] = {}     # of each process with tasks, by its stream
    count = int(_has_tasks(plan.body, into_pipelines=False))
    for item in items_of(plan):
        if isinstance(item, Pipeline):
            for process in item.processes:
                if _has_tasks(process.body):
                    first[process.stream] = count
                    count += process.replicas

    def placed(item: Item) -> Item:
        if not isinstance(item, Pipeline):
            return item
        return replace(item, processes=tuple(_on(process, first.get(process.stream, 0), folded) for process in item.processes))

    folded = most if most is not None and most < count else None
    return replace(plan, body=map_sequence(plan.body, placed)), max(1, folded or count)


def _on(process: Process, executor: int, folded: int | None) -> Process:
    """Let the tasks of a process run on an executor, those of its other replicas on the ones behind it."""
    worker: s.Scalar = s.Const(executor) if process.replicas == 1 else s.add(s.Const(executor), s.ReplicaIndex())
    if folded is not None:
        worker = s.binary(s.Op.MOD, worker, s.Const(folded))

    def placed(item: Item) -> Item:
        return replace(item, worker=worker) if isinstance(item, Submit) else item

    return replace(process, body=map_sequence(process.body, placed))


def _has_tasks(item: Item, *, into_pipelines: bool = True) -> bool:
    if isinstance(item, Pipeline) and not into_pipelines:
        return False
    return isinstance(item, Submit) or any(_has_tasks(inner, into_pipelines=into_pipelines) for inner in inner_items(item))
