"""Cards of workloads: loops as nested boxes with their sizes, and calls with what they read and write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pto_wsp.ir import workload as wl
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.text import print_workload
from pto_wsp.ir.view import print_view
from pto_wsp.ir.workload_type import type_of
from pto_wsp.schedule.schedule import Schedule
from pto_wsp.view.card import Box, BoxesPart, Card, LegendEntry, Site, SiteArgument
from pto_wsp.view.colours import legend_of
from pto_wsp.view.loop_sizes import Arrays, LoopSize, LoopSizes, SiteSize, sizes_of_loops
from pto_wsp.view.schedule_cards import schedule_table
from pto_wsp.wording import counted

_MOST_LINES = 400      # lines of a workload in a cell
_LONGEST_TYPE = 4000   # columns: on one line
_MOST_MAPS = 60        # regions that are drawn

Tree = list[tuple[str, "Tree"]]


def workload_card(workload: wl.Workload, schedule: Schedule, arrays: Arrays, state: str = "not compiled: .compile()") -> Card:
    """Return the card of a workload: its loops as boxes, its calls, and its schedule. `arrays`: what its tensors hold now, by id."""
    tasks = tuple(wl.tasks(workload.body))
    names = tuple(dict.fromkeys(task.kernel.name for task in tasks))
    entries = dict(zip(names, legend_of(names), strict=True))
    sizes = sizes_of_loops(workload, arrays)
    lines = print_workload(workload).splitlines()[1:]
    maps = len(tasks) and sum(len(site.regions) for site in sizes.sites) <= _MOST_MAPS
    sites = iter([_site(task, entries, size, with_maps=bool(maps)) for task, size in zip(tasks, sizes.sites, strict=True)])
    boxes = tuple(_boxes(_tree(lines[:_MOST_LINES]), sites, iter(sizes.loops), frozenset(names)))
    parts: list[Any] = [BoxesPart(boxes=boxes, more=max(0, len(lines) - _MOST_LINES))] if boxes else []
    if schedule != Schedule():
        parts.append(schedule_table(schedule))
    number = "" if sizes.tasks is None else f"{counted(sizes.tasks, 'task')} with what is bound now, "
    subtitle = f"Workload · {number}{counted(len(tasks), 'call')} of {counted(len(names), 'kernel')}" if tasks else "Workload"
    return Card(title=workload.name, subtitle=subtitle, state=state, sentence=_sentence(tasks, sizes), parts=tuple(parts),
                foot=type_of(workload, _LONGEST_TYPE))


def _sentence(tasks: Sequence[wl.Task], sizes: LoopSizes) -> str:
    """Return what a run has to give, and what its tasks decide."""
    if not tasks:
        return "It makes no task."
    said = [f"Open until bind: {', '.join(sizes.open)}."] if sizes.open else []
    said += [f"Its tasks decide {', '.join(sizes.decided)}, and so which tasks there are."] if sizes.decided else []
    if sizes.tasks == 0:
        said.append("It makes no task with what is bound now.")
    return " ".join(said)


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


def _boxes(tree: Tree, sites: Iterator[Site], loops: Iterator[LoopSize], kernels: frozenset[str]) -> Iterator[Box | Site | str]:
    for head, inside in tree:
        call = head.partition(" = ")[2] if head.startswith("task") and " = " in head else head
        if call.partition("(")[0].partition("[")[0] in kernels:
            yield next(sites)
        elif head.endswith(":"):
            order: Literal["any", "down", "none"] = "none"
            size = LoopSize("")
            if head.startswith("for "):
                order, size = "down" if ".seq(" in head else "any", next(loops)
            yield Box(head=head, size=size.text, order=order, lengths=size.lengths, dots=size.dots,
                      inside=tuple(_boxes(inside, sites, loops, kernels)))
        else:
            yield head


def _site(task: wl.Task, entries: Mapping[str, LegendEntry], size: SiteSize, *, with_maps: bool) -> Site:
    roles = {param.name: param.role.value.lower() for param in task.kernel.memory_params}
    arguments = tuple(SiteArgument(label=f"{arg.param} {roles.get(arg.param, '')}".strip(),
                                   value=print_view(arg.view) if isinstance(arg, wl.ViewArg) else print_scalar(arg.value),
                                   region=size.regions.get(arg.param) if with_maps else None) for arg in task.args)
    index = f"[{', '.join(map(print_scalar, task.index))}]" if task.index else ""
    return Site(kernel=entries[task.kernel.name], index=index, arguments=arguments,
                tasks="" if size.tasks is None else counted(size.tasks, "task"))
