"""Cards of iteration spaces: a grid of the two innermost loops, a cell a task, coloured by where and by when the task ran.

Outer loops are small multiples. Ragged rows are short, sparse ones have holes, and the cell of a tail is as narrow as the tail. Where tasks
are many, a cell stands for several: it has the colour of the executor that most of them ran on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pto_wsp.run.failures import RecordNames
from pto_wsp.run.task_list import ListedTask, TaskList, TaskRegion
from pto_wsp.timing.graph import Regions
from pto_wsp.timing.trace import Trace
from pto_wsp.values import dataclass
from pto_wsp.view.card import Card, GridCell, GridExecutor, GridPanel, GridPart, LegendEntry, MapsPart, TablePart
from pto_wsp.view.colours import legend_of
from pto_wsp.view.maps import region_map
from pto_wsp.wording import counted

MOST_CELLS = 1000
_MOST_NAMED = 200           # cells that say their task in a tooltip
_MOST_PANELS, _MOST_SITES, _MOST_EXECUTORS = 8, 3, 12
_MOST_ROWS, _MOST_COLUMNS = 32, 64
_LEVELS = 8
_MOST_LISTED = 12
_LEAST_STEP = 4             # indices that are multiples of less may be a sparse row's
_SAMPLE = 1 << 17           # tasks that are looked at where there are more

Column = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class SpaceTasks:
    """The tasks of one call, by task: indices [n, depth], with the name of each index.

    `name`: of a task, by its place among these. `width`: percent of a cell; None if all are whole. `where`, `start`, `end`: the executor
    and the times in `unit` of a run of `total`; None before one. `each`: how many tasks one of these stands for.
    `first_of`: the number of tasks of the run, if only its first ones are here.
    """

    kernel: LegendEntry
    axes: tuple[str, ...]
    index: Column
    name: Callable[[int], str]
    width: Column | None = None
    where: Column | None = None
    start: Column | None = None
    end: Column | None = None
    unit: str = ""
    total: int = 0
    place: str = "executor"
    each: int = 1
    first_of: int = 0


# -- tasks that are listed ---------------------------------------------------------------------------------------------
def task_list_card(tasks: TaskList) -> Card:
    """Return the card of the tasks of a workload that has not run: a grid a call, and the regions of the middle task."""
    by_call: dict[tuple[str, tuple[str, ...]], list[ListedTask]] = {}
    for task in tasks:
        by_call.setdefault((task.kernel, task.axes[:len(task.index)]), []).append(task)
    entries = dict(zip(names := tuple(dict.fromkeys(kernel for kernel, _ in by_call)), legend_of(names), strict=True))
    parts: list[Any] = []
    largest = sorted(by_call.items(), key=lambda item: -len(item[1]))[:_MOST_SITES]
    for (kernel, axes), mine in largest:
        widths = _widths([_written(task.regions) for task in mine])
        space = SpaceTasks(entries[kernel], axes, np.array([task.index for task in mine], np.int64).reshape(len(mine), len(axes)),
                           [task.name for task in mine].__getitem__, widths)
        chosen = len(mine) // 2
        parts.append(grid_of(space, chosen, MOST_CELLS // len(largest)))
        if len(parts) == 1 and mine[chosen].regions:
            parts.append(maps_of(mine[chosen].name, mine[chosen].regions))
    parts.append(TablePart(title="In program order", head=("task", "arguments"), more=max(0, len(tasks) - _MOST_LISTED), rows=tuple(
        (task.name, ", ".join(f"{name}={value}" for name, value in task.arguments)) for task in tasks[:_MOST_LISTED])))
    return Card(title="Tasks", subtitle=f"{counted(len(tasks), 'task')} of {counted(len(by_call), 'call')}", state="not run",
                sentence="" if tasks else "There are no tasks: a loop around every call has no iterations, or no condition holds.",
                parts=tuple(parts) if tasks else (), foot="print(tasks) lists all of them; a compiled program runs them")


def maps_of(task: str, regions: Sequence[TaskRegion], note: str = "") -> MapsPart:
    """Return maps of the regions of tensors that one task uses."""
    return MapsPart(title=task, note=note or "the middle task: what it uses", maps=tuple(map(region_map, regions)))


def _written(regions: Sequence[TaskRegion]) -> int:
    """Return the rows of a task's first output; of its first input where it has none."""
    return next((region.extent[0] for region in regions if region.role.writes), regions[0].extent[0] if regions else 1)


def _name_of(names: RecordNames, at: Column, k: int) -> str:
    return names[int(at[k])]


def _widths(rows: Sequence[int]) -> Column | None:
    """Return the width of each task's cell by its rows; None if all have as many."""
    found = np.array(rows, np.int64)
    most = int(found.max(initial=1))
    return None if not found.size or int(found.min()) == most else np.maximum(8, 100 * found // max(1, most))


# -- tasks of a run ----------------------------------------------------------------------------------------------------
def run_grids(trace: Trace, regions: Regions | None = None) -> tuple[Any, ...]:
    """Return the iteration spaces of the calls whose tasks took most cycles, and the regions of a middle task of the first one.

    `regions`: the regions of a task by number, where the record still has them.
    """
    if not isinstance(trace.names, RecordNames) or not len(trace):
        return ()
    looked_at, each = _sampled(len(trace))
    looked_at = looked_at[trace.executor[looked_at] >= 0]
    sites = trace.names.site_numbers()[looked_at]
    cycles = np.bincount(sites, (trace.end[looked_at] - trace.start[looked_at]).astype(np.float64))
    order = [site for site in np.argsort(-cycles, kind="stable").tolist() if cycles[site] > 0][:_MOST_SITES]
    entries = legend_of(trace.kernels)
    parts: list[Any] = []
    for site in order:
        at, stands_for = looked_at[sites == site], each
        axes, index = trace.names.indices_of(site, at)
        if each > 1 and len(at) and len(_panels(*_outer(axes, index))[1]) > _MOST_PANELS:     # few of the tasks are drawn: not a sample
            at, stands_for = np.flatnonzero(trace.names.site_numbers()[:_SAMPLE] == site), 1
            axes, index = trace.names.indices_of(site, at)
        if len(at) < 2:
            continue
        chosen = len(at) // 2
        known = () if regions is None or parts else regions.regions_of(int(at[chosen]))
        widths = None if regions is None or len(at) > MOST_CELLS else _widths(regions.rows_written(at.tolist()))
        space = SpaceTasks(entries[int(trace.kernel[at[0]])], axes, index, partial(_name_of, trace.names, at), widths, trace.executor[at],
                           trace.start[at], trace.end[at], trace.unit, max(1, trace.total_cycles), trace.place, stands_for,
                           len(trace) if each > stands_for else 0)
        parts.append(grid_of(space, chosen, MOST_CELLS // len(order)))
        if known:
            ran = (f"{trace.place} {int(trace.executor[at[chosen]])}, {int(trace.start[at[chosen]]):,} to {int(trace.end[at[chosen]]):,} "
                   f"{trace.unit}; what it uses")
            parts.append(maps_of(trace.names[int(at[chosen])], known, ran))
    return tuple(parts)


def _sampled(n: int) -> tuple[Column, int]:
    """Return the tasks to look at, and how many each stands for: all, or a random one of each few of a long run."""
    each = -(-n // _SAMPLE)
    if each == 1:
        return np.arange(n), 1
    starts = np.arange(0, n - each + 1, each)
    return starts + np.random.default_rng(0).integers(0, each, len(starts)), each


# -- the grid ----------------------------------------------------------------------------------------------------------
def grid_of(space: SpaceTasks, chosen: int, most_cells: int = MOST_CELLS) -> GridPart:
    """Return the grid of a call's tasks. `chosen`: the task whose cell is outlined."""
    n = len(space.index)
    axes, index = _moving(space.axes, space.index)
    wrapped = index.shape[1] == 1
    columns, x_base, x_step = _ranks(index[:, -1])
    if wrapped:
        rows, columns = columns // _MOST_COLUMNS, columns % _MOST_COLUMNS
        y_base, y_step, panel, titles = x_base, x_step * _MOST_COLUMNS, np.zeros(n, np.int64), [""]
    else:
        rows, y_base, y_step = _ranks(index[:, -2])
        panel, titles = _panels(axes[:-2], index[:, :-2])
    n_rows, n_columns = int(rows.max()) + 1, int(columns.max()) + 1
    n_panels = min(len(titles), _MOST_PANELS)
    budget = max(1, most_cells // n_panels)
    one_by_one = space.each == 1 and n <= most_cells and n_rows <= 2 * _MOST_ROWS and n_columns <= 2 * _MOST_COLUMNS
    per_row, per_column = 1, 1
    if not one_by_one:
        per_column = -(-n_columns // min(_MOST_COLUMNS, max(1, budget // min(n_rows, _MOST_ROWS))))
        per_row = -(-n_rows // max(1, min(_MOST_ROWS, budget // -(-n_columns // per_column))))
    shown_rows, shown_columns = -(-n_rows // per_row), -(-n_columns // per_column)
    merged = per_row * per_column > 1
    cell = (panel * shown_rows + rows // per_row) * shown_columns + columns // per_column
    shown = np.flatnonzero(panel < n_panels)
    made = _merged_cells(space, cell, shown, n_panels * shown_rows * shown_columns, per_row * per_column) if merged or not one_by_one \
        else _cells(space, cell, shown)
    size, row_name = shown_rows * shown_columns, "" if wrapped else axes[-2]
    panels: list[GridPanel] = []
    place: dict[int, tuple[int, int]] = {}
    for number in range(n_panels):
        mine = [(key, found) for key, found in made if key // size == number]
        place |= {key: (number, at) for at, (key, _) in enumerate(mine)}
        cells = tuple(found.model_copy(update={"x": key % shown_columns, "y": key % size // shown_columns}) for key, found in mine)
        panels.append(GridPanel(title=titles[number], n_rows=shown_rows, n_columns=shown_columns, cells=cells,
                                row_labels=_row_labels(row_name, shown_rows, y_base, y_step * per_row)))
    executors = _executors(space)
    last = None if space.end is None or space.each > 1 or space.first_of else place.get(int(cell[int(np.argmax(space.end))]))
    return GridPart(title=f"{space.kernel.name} over {', '.join(axes)}{_fixed(space)}", kernel=space.kernel, across=axes[-1], down=row_name,
                    note=_note(n * space.each, merged, per_row * per_column, wrapped, space), place=space.place,
                    panels=tuple(panels), executors=executors[:_MOST_EXECUTORS], unit=space.unit, total=space.total, last=last,
                    chosen=place.get(int(cell[chosen])), merged=merged, more=len(titles) - n_panels,
                    more_executors=max(0, len(executors) - _MOST_EXECUTORS))


def _note(n: int, merged: bool, each: int, wrapped: bool, space: SpaceTasks) -> str:
    said = [f"about {n:,} tasks" if space.each > 1 else counted(n, "task") if n < 1000 else f"{n:,} tasks"]
    said += [f"a cell is up to {each:,} iterations"] if merged else []
    said += [f"of the first {_SAMPLE:,} tasks of the run's {space.first_of:,}"] if space.first_of else []
    said += [f"from a sample, one of {space.each}"] if space.each > 1 else []
    said += ["line by line"] if wrapped and n > _MOST_COLUMNS else []
    said += ["a narrow cell is a tail"] if space.width is not None and not merged else []
    return "; ".join(said)


def _fixed(space: SpaceTasks) -> str:
    """Return the indices that all tasks of the call have, which tell calls of one kernel apart; nothing where no other index differs."""
    same = [k for k in range(space.index.shape[1]) if int(space.index[:, k].min()) == int(space.index[:, k].max())]
    if not same or len(same) == space.index.shape[1]:
        return ""
    shown = (f"{axis}={value}" if not axis.lstrip("-").isdigit() else str(value)
             for axis, value in ((space.axes[k], int(space.index[0, k])) for k in same))
    return f", at {', '.join(shown)}"


def _moving(axes: tuple[str, ...], index: Column) -> tuple[tuple[str, ...], Column]:
    """Return the indices that differ between tasks; at least one column, which numbers the tasks where none differs."""
    moving = [k for k in range(index.shape[1]) if len(index) and int(index[:, k].min()) != int(index[:, k].max())]
    if not moving:
        return ("task",), np.arange(len(index), dtype=np.int64)[:, None]
    return tuple(axes[k] if k < len(axes) else f"index {k}" for k in moving), index[:, moving]


def _outer(axes: tuple[str, ...], index: Column) -> tuple[tuple[str, ...], Column]:
    """Return the loops around the two innermost ones."""
    axes, index = _moving(axes, index)
    return axes[:-2], index[:, :-2]


def _ranks(values: Column) -> tuple[Column, int, int]:
    """Return the places of indices, with the first index and the step: that of a loop in steps of blocks, else 1."""
    base = int(values.min())
    step = int(np.gcd.reduce(values - base))
    step = step if step >= _LEAST_STEP else 1
    return (values - base) // step, base, step


def _panels(axes: Sequence[str], outer: Column) -> tuple[Column, list[str]]:
    """Return the panel of each task, numbered by the outer indices in their order, and the titles of the panels."""
    key = np.zeros(len(outer), np.int64)
    for k in range(outer.shape[1]):
        ranks, _, _ = _ranks(outer[:, k])
        key = key * (int(ranks.max()) + 1) + ranks
    _, first, panel = np.unique(key, return_index=True, return_inverse=True)
    titles = [", ".join(f"{axis}={value}" for axis, value in zip(axes, outer[at].tolist(), strict=True)) for at in first.tolist()]
    return panel.reshape(-1), titles


def _row_labels(name: str, n_rows: int, base: int, step: int) -> tuple[str, ...]:
    every = -(-n_rows // 16)
    before = f"{name}=" if name else ""
    return tuple(f"{before}{base + row * step:,}" if row % every == 0 and n_rows > 1 else "" for row in range(n_rows))


def _levels(space: SpaceTasks) -> Column:
    start = np.zeros(len(space.index), np.int64) if space.start is None else space.start
    return np.minimum(_LEVELS - 1, start.astype(np.int64) * _LEVELS // max(1, space.total))


def _cells(space: SpaceTasks, cell: Column, shown: Column) -> list[tuple[int, GridCell]]:
    """Return the cells of tasks, one each; the last task of those with the same indices stands for all of them."""
    levels = _levels(space)
    width = np.full(len(cell), 100) if space.width is None else space.width
    where = np.full(len(cell), space.kernel.slot) if space.where is None else space.where
    named = len(shown) <= _MOST_NAMED
    found = {int(cell[k]): GridCell(x=0, y=0, width=int(width[k]), where=int(where[k]), when=int(levels[k]),
                                    name=_said(space, k) if named else "") for k in shown.tolist()}
    return sorted(found.items(), key=lambda item: item[0])


def _said(space: SpaceTasks, k: int) -> str:
    if space.where is None or space.start is None or space.end is None:
        return space.name(k)
    return f"{space.name(k)}: {space.place} {int(space.where[k])}, {int(space.start[k]):,} to {int(space.end[k]):,} {space.unit}"


def _merged_cells(space: SpaceTasks, cell: Column, shown: Column, n_cells: int, whole: int) -> list[tuple[int, GridCell]]:
    """Return the cells that have tasks: the commonest executor, the mean start; as wide as the part of the cell that has tasks."""
    keys = cell[shown]
    count = np.bincount(keys, minlength=n_cells)
    when = np.bincount(keys, _levels(space)[shown], minlength=n_cells)
    where = np.full(n_cells, space.kernel.slot)
    if space.where is not None:
        numbers, inverse = np.unique(space.where[shown], return_inverse=True)
        votes = np.bincount(keys * len(numbers) + inverse.reshape(-1), minlength=n_cells * len(numbers)).reshape(n_cells, len(numbers))
        where = numbers[votes.argmax(axis=1)]
    return [(key, GridCell(x=0, y=0, width=int(max(8, min(100, 100 * space.each * count[key] // whole))), where=int(where[key]),
                           when=int(when[key] / count[key] + 0.5))) for key in np.flatnonzero(count).tolist()]


def _executors(space: SpaceTasks) -> tuple[GridExecutor, ...]:
    """Return the executors that ran tasks of the call, and the share of each in percent of the busiest."""
    if space.where is None or space.start is None or space.end is None:
        return ()
    busy = np.bincount(space.where, (space.end - space.start).astype(np.float64))
    most = max(1.0, float(busy.max()))
    return tuple(GridExecutor(number=number, share=round(100 * float(busy[number]) / most)) for number in np.unique(space.where).tolist())
