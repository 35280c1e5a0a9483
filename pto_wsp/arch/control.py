"""Derive the resources of task dispatch from an arch: control processors, their share of cores, cycles per task, GM bandwidth.

>>> core_share(builtin_arch("ascend_910b"), 6, ("cube", "vector"))
(4, 8)
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

from pto_wsp.arch.model import Arch
from pto_wsp.errors import ArchError
from pto_wsp.source import here
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class TaskCycles:
    """Cycles of one task on the control processors."""

    submit: int
    dispatch: int
    retire: int


def aicpus_of(arch: Arch, named: int | None) -> int:
    """Return the number of control processors in use: the number that the policy names, else all of the machine.

    Raises: C110 if the policy names more than the machine has.
    """
    has = arch.aicpu.count
    if named is None:
        return has or arch.aicpu.default_count
    if has is not None and named > has:
        raise ArchError(f"the schedule names more AICPUs than arch `{arch.name}` has", here(), expected=f"at most {has}",
                        found=f"{named}", help=f"name fewer, or give the arch more: arch.with_aicpu(count={named})")
    return named


def core_share(arch: Arch, n_aicpus: int, needed: Collection[str]) -> tuple[int, int]:
    """Return the number of cube and vector cores per AICPU: an even share of the machine's; 1 and 1 on a neutral machine.

    `needed`: of "cube" and "vector", the kinds that kernels run on. Cores left over by an uneven share stay unused.
    Raises: C110 if the arch does not give a number of cores, or if the share of a needed kind is 0.
    """
    shares = []
    for kind, count in (("cube", arch.cores.cube), ("vector", arch.cores.vector)):
        if count is None and arch.neutral:
            shares.append(1)
        elif count is None and kind in needed:
            raise ArchError(f"arch `{arch.name}` does not say how many {kind} cores it has", here(), expected=f"cores.{kind}",
                            found="None: its sources give no number", help=f"give what you know: arch.with_cores({kind}=...)")
        else:
            shares.append((count or 0) // n_aicpus)
            if kind in needed and shares[-1] == 0:
                raise ArchError(f"arch `{arch.name}` has no {kind} core for each AICPU, and kernels run on them", here(),
                                expected=f"cores.{kind} >= {n_aicpus}, the AICPUs that share them", found=f"{count}",
                                help="use fewer AICPUs" if count else f"run it on an arch with {kind} cores")
    return shares[0], shares[1]


def task_cycles(arch: Arch) -> TaskCycles:
    """Return the cycles of one task on the control processors.

    Raises: C110 naming a number that the arch does not give.
    """
    aicpu, cycles_by_step = arch.aicpu, {}
    for step, cycles in (("submit", aicpu.submit_cycles), ("dispatch", aicpu.dispatch_cycles), ("retire", aicpu.retire_cycles)):
        if cycles is None:
            raise ArchError(f"arch `{arch.name}` does not say what it costs to {step} a task", here(), expected=f"aicpu.{step}_cycles",
                            found="None: its sources give no number", help=f"give what you know: arch.with_aicpu({step}_cycles=...)")
        cycles_by_step[step] = cycles
    return TaskCycles(**cycles_by_step)


def shared_bandwidth(arch: Arch) -> float:
    """Return the bytes per cycle that all cores together move to and from GM; 0.0: unbounded."""
    bandwidth = next((memory.bandwidth_bytes_per_cycle for memory in arch.memories if memory.name == "GM"), None)
    return bandwidth or 0.0


def cycles_between(arch: Arch, per_ms: float) -> Fraction:
    """Return the cycles between two events at a rate of `per_ms` events per millisecond.

    Raises: C110 for an arch without a clock.
    """
    if arch.clock_ghz is None:
        raise ArchError(f"arch `{arch.name}` has no clock, and a rate is in milliseconds", here(), expected="clock_ghz",
                        found="None: its sources give no number", help="give what you know: arch.with_clock(...)")
    every = _as_written(arch.clock_ghz) * 1_000_000 / _as_written(per_ms)
    return max(every.limit_denominator(1 << 20), Fraction(1, 1 << 20))     # a million tasks per cycle are no limit


def _as_written(number: float) -> Fraction:
    return Fraction(repr(float(number)))     # 2.4 becomes 12 / 5, not the stored double
