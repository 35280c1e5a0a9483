"""Pools: what the executors of an AICPU are, and which of them run a task."""

from __future__ import annotations

from pto_wsp.arch.control import core_share
from pto_wsp.arch.model import Arch
from pto_wsp.expr.kernel import Kernel
from pto_wsp.ops.entry import Unit
from pto_wsp.plan.kernel.unit import unit_of
from pto_wsp.plan.schedule.keys import TaskKeys
from pto_wsp.schedule.directives import Pools
from pto_wsp.types import scalar as s

MAX_POOLS = 1 << 12     # PTO_MAX_POOLS
_MAX_EXECUTORS = 1 << 20     # of pools that a key names: the simulator has those of all pools up to the last one
POOL_OF_UNIT = {Unit.CUBE: 0, Unit.VECTOR: 1}     # the order in which `core_share` has them


def pool_sizes(pools: Pools, arch: Arch, n_workers: int, units: frozenset[Unit]) -> tuple[int, ...] | None:
    """Return how many executors an AICPU has of each pool; None for pools of one, as many as tasks name. `units`: what kernels need.

    Raises: C110 when no core of a unit that kernels need falls to an AICPU.
    """
    match pools.kind:
        case "single":
            return (1,)
        case "by_exec_unit":
            return core_share(arch, n_workers, [unit.value for unit in units])
        case "custom":
            return None


def pool_of(pools: Pools, keys: TaskKeys, kernel: Kernel, n_workers: int) -> s.Scalar:
    """Return the pool of one task; `n_workers`: how many AICPUs have an executor of it."""
    if pools.key is not None:
        return keys.natural(pools.key, "Pools.custom", min(MAX_POOLS, _MAX_EXECUTORS // max(1, n_workers)) - 1)
    return s.Const(POOL_OF_UNIT[unit_of(kernel)] if pools.kind == "by_exec_unit" else 0)
