"""Count what a run over a mesh sent from rank to rank, and name the executors of ranks and the links between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto_wsp.ir import scalar as s
from pto_wsp.ir.execution_rules import ExecutionRules
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.timing.columns import RecordedTasks, evaluate_columns


def bytes_sent(tasks: RecordedTasks, plan: TaskPlan) -> np.ndarray[Any, Any]:
    """Return the bytes that copies moved, an int64 matrix by source and target rank; what stays on a rank is on the diagonal."""
    sent = np.zeros((plan.rules.n_ranks, plan.rules.n_ranks), np.int64)
    for task, at, columns in tasks.leaves():
        if task.on is None or task.on.source is None:
            continue
        count = len(tasks.numbers(at))
        of, to = (np.broadcast_to(evaluate_columns(rank, columns), (count,)) for rank in (task.on.source, task.on.rank))
        param = plan.kernels[task.kernel].kernel.memory_params[-1].name
        rows, cols = (np.broadcast_to(evaluate_columns(s.ParamExtent(param, dim), columns), (count,)) for dim in (0, 1))
        np.add.at(sent, (of, to), rows * cols * plan.tensors[task.places[-1].slot].ref.dtype.nbytes)
    return sent


def place_name(rules: ExecutionRules, pool: int, worker: int, core: int) -> str:
    """Return what an executor of a rank is called: `rank 0`, `rank 0 core 1`, `rank 0 link to rank 1`; "" without a mesh.

    `core`: the executor's number in its pool of the worker.
    """
    if not rules.n_ranks or rules.pool_size is None:
        return ""
    rank, inner = divmod(worker, rules.workers_of_rank)
    n_pools = len(rules.pool_size) - len(rules.links)
    if pool >= n_pools:
        return f"rank {rank} {rules.links[pool - n_pools]}"
    size = rules.pool_size[pool]
    before = sum(rules.pool_size[:pool])
    n_cores = rules.workers_of_rank * sum(rules.pool_size[:n_pools])
    number = inner * (n_cores // rules.workers_of_rank) + before + core % max(1, size)
    return f"rank {rank}" if n_cores == 1 else f"rank {rank} core {number}"
