"""Cards of what a user writes: kernels, workloads, schedules, and the programs made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pto_wsp.ir import workload as wl
from pto_wsp.ir.kernel import Kernel
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.text import print_workload
from pto_wsp.ir.view import print_view
from pto_wsp.ir.workload_type import type_of
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.timing.stats import Stats
from pto_wsp.timing.trace import Trace
from pto_wsp.view.card import Box, BoxesPart, Card, LabelledValue, Preformatted, Site, TablePart, ValuesPart
from pto_wsp.view.colours import legend_of
from pto_wsp.view.run_cards import lanes_of, stats_parts, verdict

_MOST_LINES = 400      # lines of a workload or kernel in a cell


# -- kernels -----------------------------------------------------------------------------------------------------------
def kernel_card(name: str, params: Sequence[str], ir: Kernel | None, text: str, wanted: str) -> Card:
    """Return the card of a kernel. `text`: its IR as printed; `wanted`: what a specialisation needs, where `ir` is None."""
    (entry,) = legend_of((name,))
    lines = text.splitlines()
    values = tuple(LabelledValue(label=param.partition(": ")[0], value=param.partition(": ")[2]) for param in params)
    parts: list[Any] = [ValuesPart(values=values)]
    if ir is not None:
        shown = "\n".join(lines[:_MOST_LINES])
        more = f"\n… {len(lines) - _MOST_LINES} more lines" if len(lines) > _MOST_LINES else ""
        parts.append(Preformatted(title="Tile IR", text=shown + more))
    return Card(title=name, subtitle=f"Kernel {entry.letter}", state="" if ir is not None else wanted, parts=tuple(parts),
                foot=f'{name}.cost("ascend_910b") gives the cycles of one task by pipe, {name}.run(…) runs it on arrays')


# -- workloads ---------------------------------------------------------------------------------------------------------
def workload_card(workload: wl.Workload, schedule: Schedule) -> Card:
    """Return the card of a workload: its loops as nested boxes, its calls with what they read and write, and its schedule."""
    tasks = tuple(wl.tasks(workload.body))
    names = tuple(dict.fromkeys(task.kernel.name for task in tasks))
    entries = dict(zip(names, legend_of(names), strict=True))
    lines = print_workload(workload).splitlines()[1:]
    sites = iter([_site(task, entries) for task in tasks])
    boxes = tuple(_boxes(_tree(lines[:_MOST_LINES]), sites, frozenset(names)))
    parts: list[Any] = [BoxesPart(boxes=boxes, more=max(0, len(lines) - _MOST_LINES))] if boxes else []
    if schedule != Schedule():
        parts.append(schedule_table(schedule))
    return Card(title=workload.name, subtitle=f"Workload · {len(tasks)} calls of {len(names)} kernels" if tasks else "Workload",
                state="not compiled: .compile()", sentence="" if tasks else "It makes no task.", parts=tuple(parts), foot=type_of(workload))


Tree = list[tuple[str, "Tree"]]


def _tree(lines: Sequence[str]) -> Tree:
    """Return indented lines as a tree; a line that goes on a call stands at its end."""
    root: Tree = []
    stack: list[tuple[int, Tree]] = [(-1, root)]
    for line in lines:
        depth = len(line) - len(line.lstrip())
        while stack[-1][0] >= depth:
            stack.pop()
        inside: Tree = []
        stack[-1][1].append((line.strip(), inside))
        stack.append((depth, inside))
    return root


def _boxes(tree: Tree, sites: Iterator[Site], kernels: frozenset[str]) -> Iterator[Box | Site | str]:
    for head, inside in tree:
        call = head.partition(" = ")[2] if head.startswith("task") and " = " in head else head
        if call.partition("(")[0].partition("[")[0] in kernels:
            yield next(sites)
        elif head.endswith(":"):
            order: Literal["any", "down", "none"] = "none"
            if head.startswith("for "):
                order = "down" if ".seq(" in head else "any"
            yield Box(head=head, order=order, inside=tuple(_boxes(inside, sites, kernels)))
        else:
            yield head


def _site(task: wl.Task, entries: dict[str, Any]) -> Site:
    roles = {param.name: param.role.value.lower() for param in task.kernel.memory_params}
    arguments = tuple(LabelledValue(label=f"{arg.param} {roles.get(arg.param, '')}".strip(),
                           value=print_view(arg.view) if isinstance(arg, wl.ViewArg) else print_scalar(arg.value)) for arg in task.args)
    index = f"[{', '.join(map(print_scalar, task.index))}]" if task.index else ""
    return Site(kernel=entries[task.kernel.name], index=index, arguments=arguments)


# -- schedules ---------------------------------------------------------------------------------------------------------
def schedule_table(schedule: Schedule) -> TablePart:
    """Return a row for each directive that is set."""
    return TablePart(title="Schedule", head=("directive", "value"), rows=tuple(schedule.directives()))


def schedule_card(schedule: Schedule) -> Card:
    """Return the card of a schedule."""
    table = schedule_table(schedule)
    return Card(title=schedule.name or "Schedule", subtitle="Schedule" if schedule.name else "",
                sentence="" if table.rows else "Every directive is at its default.", parts=(table,) if table.rows else (),
                foot="capabilities(target) says what each target enforces")


# -- programs ----------------------------------------------------------------------------------------------------------
def program_card(name: str, target: str, state: str, facts: Sequence[tuple[str, str]], checks: Sequence[str], schedule: Schedule,
                 stats: Stats | None, trace: Trace | None) -> Card:
    """Return the card of a program. `stats`, `trace`: of its last run; None if they are not simulated yet, or too long to draw."""
    parts: list[Any] = [ValuesPart(values=tuple(LabelledValue(label=label, value=value) for label, value in facts))]
    if trace is not None and len(trace):
        parts.append(lanes_of(trace))
    if stats is not None:
        parts.extend(stats_parts(stats))
    if schedule != Schedule():
        parts.append(schedule_table(schedule))
    if checks:
        rows = tuple((line.partition(": ")[0], line.partition(": ")[2]) for line in checks)
        parts.append(TablePart(title="Checks", head=("verdict", "check"), rows=rows[:12], more=max(0, len(rows) - 12)))
    return Card(title=name, subtitle=f"Program · {target}", state=state,
                sentence=verdict(stats) if stats is not None else "", parts=tuple(parts))
