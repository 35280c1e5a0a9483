"""Cards of schedules and of the machines that they are for."""

from __future__ import annotations

from typing import Literal

from pto_wsp import doors
from pto_wsp.arch.model import Arch, Memory
from pto_wsp.schedule.capability import supports
from pto_wsp.schedule.schedule import Schedule, ScheduleDifference, default_of, part_of_directive
from pto_wsp.schedule.support import Capability
from pto_wsp.view.card import Aicpus, Card, CoreGroup, MachinePart, MemorySize, Preformatted, TablePart

_MARKS = {Capability.ENFORCED: "✓\u00a0enforced", Capability.RECORDED: "·\u00a0recorded", Capability.REFUSED: "✗\u00a0refused"}
_COMPARED = ("cpu_sim", "ascend_npu")      # the targets of a schedule that no program has
_MOST_TEXT, _MOST_CODE = 300, 4000
_MOST_CORES = 96


# -- schedules ---------------------------------------------------------------------------------------------------------
def schedule_table(schedule: Schedule, target: str = "") -> TablePart:
    """Return a row for each directive that is set: its value, its default, and its effect on targets.

    `target`: the name of one target; "" for two columns, a host target and a device target.
    """
    targets = (target,) if target in doors.TARGETS else _COMPARED
    known = {name: supports(name) for name in targets}
    rows = []
    for name, text in schedule.directives():
        here = known[targets[0]].get(name)
        marks = [_MARKS[found.capability] if (found := known[each].get(name)) is not None else "" for each in targets]
        rows.append((name, text[:_MOST_TEXT], *marks, "" if here is None else here.reason, default_of(part_of_directive(name))))
    return TablePart(title="Schedule", head=("directive", "says", *targets, f"what {targets[0]} does", "without it"), rows=tuple(rows))


def schedule_card(schedule: Schedule) -> Card:
    """Return the card of a schedule: a row a directive, and the code that makes it."""
    table = schedule_table(schedule)
    code = "\n    ".join(("(w", *schedule.calls)) + ")"
    parts = (table, Preformatted(title="Code", text=code[:_MOST_CODE])) if table.rows else ()
    return Card(title=schedule.name or "Schedule", subtitle="Schedule" if schedule.name else "",
                sentence="" if table.rows else "Every directive is at its default.", parts=parts,
                foot="schedule.diff(other) says what differs; capabilities(target) says what each target enforces")


def schedule_difference_card(found: ScheduleDifference) -> Card:
    """Return the card of the differences between two schedules."""
    rows = tuple((part, mine[:_MOST_TEXT] or f"default: {default_of(part)}", theirs[:_MOST_TEXT] or f"default: {default_of(part)}")
                 for part, mine, theirs in found.rows)
    heads = tuple(schedule.name or other for schedule, other in ((found.mine, "this"), (found.theirs, "other")))
    table = TablePart(head=("directive", *heads), rows=rows)
    n = len(rows)
    return Card(title="Two schedules", sentence=f"{n} directive{'s' * (n != 1)} differ{'s' * (n == 1)}." if n else "They say the same.",
                parts=(table,) if rows else ())


# -- machines ----------------------------------------------------------------------------------------------------------
def arch_card(arch: Arch) -> Card:
    """Return the card of a machine: its control processors with the cores of which they are the homes, memories, units."""
    cost = [(name, value) for name, value in (("submit", arch.aicpu.submit_cycles), ("dispatch", arch.aicpu.dispatch_cycles),
                                              ("retire", arch.aicpu.retire_cycles)) if value is not None]
    rows = []
    for unit in arch.units:
        rates = ", ".join(f"{rate.per_cycle:g} {rate.dtype}" for rate in unit.rates)
        speed = rates or (f"{unit.bytes_per_cycle:g} bytes" if unit.bytes_per_cycle is not None else
                          f"{unit.elements_per_cycle:g} elements" if unit.elements_per_cycle is not None else "not known")
        rows.append((unit.name, speed, "" if unit.startup_cycles is None else f"{unit.startup_cycles:,}", unit.source))
    units = TablePart(title="Units of a core", head=("unit", "per cycle", "start-up cycles", "source"), rows=tuple(rows), right=(2,))
    clock = "" if arch.clock_ghz is None else f"{arch.clock_ghz:g} GHz"
    costs = ", ".join(f"{value:,} to {name}" for name, value in cost)
    sentence = f"A task costs its AICPU {sum(value for _, value in cost):,} cycles: {costs}." if any(value for _, value in cost) else ""
    return Card(title=arch.name, subtitle="Machine" + (f" · family {arch.family}" if arch.family else "") + " · neutral" * arch.neutral,
                state=clock, sentence=sentence, parts=(_machine(arch), units) if rows else (_machine(arch),),
                foot="an estimate says so; arch.with_cores(...), with_aicpu(...), with_memory(...), with_unit(...) change a number")


def _machine(arch: Arch) -> MachinePart:
    n = arch.aicpu.count or 0
    cores = arch.cores
    pools: list[tuple[Literal["cube", "vector", "core"], int]] = []
    if cores.shared and cores.total:
        pools = [("core", cores.total)]
    else:
        pools += [("cube", cores.cube)] if cores.cube else []
        pools += [("vector", cores.vector)] if cores.vector else []
    shown = max(1, n)
    groups = tuple(Aicpus(label=f"AICPU {k}" if n else "AICPUs",
                          cores=tuple(CoreGroup(kind=kind, count=min(_MOST_CORES, _share(count, shown, k))) for kind, count in pools))
                   for k in range(min(shown, 32)))
    said = []
    if not n:
        said.append("as many AICPUs as the schedule names")
    if not pools:
        said.append("as many cores as the schedule names" if arch.neutral else "its sources give no number of cores")
    if n > 32:
        said.append(f"{n - 32} more AICPUs")
    largest = max((memory.capacity_bytes or 0 for memory in arch.memories if memory.name not in ("GM", "L2")), default=0)
    return MachinePart(aicpus=groups, memories=tuple(_memory(memory, largest) for memory in arch.memories), note="; ".join(said))


def _share(count: int, n: int, k: int) -> int:
    """Return how many of `count` cores have AICPU k of n as their home: equal runs, the last with the rest."""
    each = max(1, count // n)
    return max(0, min(count, (k + 1) * each) - k * each) + (max(0, count - n * each) if k == n - 1 else 0)


def _memory(memory: Memory, largest: int) -> MemorySize:
    size = "not bounded" if memory.capacity_bytes is None else f"{memory.capacity_bytes // 1024:,} KiB"
    shared = memory.name in ("GM", "L2") or memory.name.startswith("cache")
    where = "all cores" if shared else "vector core" if memory.name == "UB" else "cube core"
    notes = [f"{memory.reserved_bytes // 1024:,} KiB of it reserved"] if memory.reserved_bytes else []
    if memory.bandwidth_bytes_per_cycle is not None:
        notes.append(f"{memory.bandwidth_bytes_per_cycle:,g} bytes a cycle for all cores together")
    share = 0 if shared or not memory.capacity_bytes else max(1, 1000 * memory.capacity_bytes // max(1, largest))
    return MemorySize(name=memory.name, where=where, size=size, share=share, note=", ".join(notes))
