"""Pools: what the executors of an AICPU are, and which of them run a task."""

from __future__ import annotations

from pto_wsp.arch.model import Arch
from pto_wsp.errors import CompileOptionError
from pto_wsp.expr.kernel import Kernel
from pto_wsp.ops.entry import Unit
from pto_wsp.plan.kernel.unit import unit_of
from pto_wsp.plan.schedule.keys import TaskKeys
from pto_wsp.schedule.directives import Pools
from pto_wsp.types import scalar as s

MAX_POOLS = 1 << 16
POOL_OF_UNIT = {Unit.CUBE: 0, Unit.VECTOR: 1}


def pool_sizes(pools: Pools, arch: Arch, n_workers: int, units: frozenset[Unit]) -> tuple[int, ...] | None:
    """Return how many executors an AICPU has of each pool; None for pools of one, as many as tasks name. `units`: what kernels need.

    Raises: C104 when no core of a unit that kernels need falls to an AICPU.
    """
    match pools.kind:
        case "single":
            return (1,)
        case "by_exec_unit":
            return tuple(_share(arch, unit, n_workers, unit in units) for unit in POOL_OF_UNIT)
        case "custom":
            return None


def pool_of(pools: Pools, keys: TaskKeys, kernel: Kernel) -> s.Scalar:
    """Return the pool of one task."""
    if pools.key is not None:
        return keys.natural(pools.key, "Pools.custom", MAX_POOLS - 1)
    return s.Const(POOL_OF_UNIT[unit_of(kernel)] if pools.kind == "by_exec_unit" else 0)


def _share(arch: Arch, unit: Unit, n_workers: int, is_needed: bool) -> int:
    """Return the cores of a unit that fall to each AICPU: the same for all, so what does not divide evenly stays idle."""
    cores = arch.cores.cube if unit is Unit.CUBE else arch.cores.vector
    if cores is None:
        return 1     # as many as the schedule names
    if cores < n_workers and is_needed:
        raise CompileOptionError(
            f"arch `{arch.name}` has no {unit.value} core for each AICPU, and tasks need one" if cores else
            f"arch `{arch.name}` has no {unit.value} core, and tasks need one", None,
            expected=f"at least {n_workers}, one for each AICPU", found=f"cores.{unit.value} = {cores}",
            help="name fewer AICPUs in the dispatch, or take Pools.single()" if cores else "take an arch that has one, or Pools.single()")
    return cores // n_workers
