"""Define `ExecutionRules`: what a schedule says about all tasks, in numbers of one arch.

What it says about a single task is in the task's `Submit`. The simulator enforces the rules; `pto_sim_options` has the same fields in C.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum, IntEnum

from pto_wsp.values import dataclass
from pto_wsp.wording import counted

_AFTER_ALL = -1      # PTO_AFTER_ALL


class WindowUnit(IntEnum):
    """PTO_WINDOW_: the unit in which a task occupies the window."""

    TASKS = 0
    BYTES = 1
    ENTRIES = 2
    EDGES = 3
    READY = 4

    def amount(self, n: int) -> str:
        """Return an amount of this unit in words: `1 task`, `64 bytes`, `2 entries`."""
        return counted(n, *_AMOUNTS[self])


_AMOUNTS = {WindowUnit.TASKS: ("task",), WindowUnit.BYTES: ("byte",), WindowUnit.ENTRIES: ("entry", "entries"),
            WindowUnit.EDGES: ("edge",), WindowUnit.READY: ("ready task",)}


class FullWindow(IntEnum):
    """PTO_WINDOW_: the behaviour of a full window."""

    STALL = 0
    ABORT = 1
    BENCHMARK = 2


@dataclass(frozen=True, slots=True)
class WindowRule:
    """A window of every stream: the size in a unit, and what happens when the window is full."""

    size: int
    unit: WindowUnit = WindowUnit.TASKS
    full: FullWindow = FullWindow.STALL

    @property
    def text(self) -> str:
        """The window in words: `window of 8192 tasks`."""
        return f"window of {self.unit.amount(self.size)}"


class Release(IntEnum):
    """PTO_TIMING_: when submitted tasks are released."""

    IMMEDIATE = 0
    BATCHED = 1
    INTERLEAVED = 2
    RATE = 3


class Places(IntEnum):
    """PTO_PLACE_: which host thread runs a task."""

    ANY = 0
    HOME = 1
    CALENDAR = 2


class RouteKind(IntEnum):
    """PTO_ROUTE_: how the ranks of a mesh are linked, where a copy may take several links."""

    TORUS = 1
    SWITCH = 2


class TaskField(Enum):
    """PTO_KEEP_: what a schedule may say about each task beside worker and cost; the value is the bit's position."""

    LANE = 0
    POOL = 1
    PRIORITY = 2
    POSITION = 3
    BYTES = 4
    RANKS = 5


@dataclass(frozen=True, slots=True)
class Routes:
    """The links that a copy between ranks takes, one after the other.

    `axes`: the sizes of a torus, () for a switch. `buffers`: copies that have room at the far end of a link, 0 for any number.
    """

    axes: tuple[int, ...]
    buffers: int

    def between(self, source: int, target: int) -> tuple[tuple[int, int], ...]:
        """Return the route between two ranks, each link as (rank, number). `rank`: at the start of the link, behind a switch at its end."""
        if not self.axes:
            return () if source == target else ((source, 0), (target, 1))
        found, at, below = [], source, math.prod(self.axes)
        for axis, size in enumerate(self.axes):
            below //= size
            up = (target // below - at // below) % size
            step = 1 if up <= size - up else -1
            for _ in range(min(up, size - up)):
                found.append((at, 2 * axis + (step < 0)))
                place = at // below % size
                at += ((place + step) % size - place) * below
        return tuple(found)


@dataclass(frozen=True, slots=True)
class ExecutionRules:
    """How tasks get to executors.

    `n_workers`: AICPUs, the homes of tasks; 0 if a calendar leaves the number to the tasks. `pool_size`: executors of each pool per worker;
    None: pools of one executor, as many as tasks name. `shared`: one ready queue per pool for all workers. `steals`: an idle executor
    takes ready tasks of other workers. `calendar`: an executor runs its tasks in the order of their positions; `starts`: by task, the
    earliest start cycle, () for none. `at_home`: tasks of one home belong together, so host threads run them at their home. `release_n`:
    size of a batch, or number of lanes taking turns; `release_every`: cycles between two releases, as numerator and denominator. `window`:
    0 for none; `more`: windows of other units, which hold a stream too. `start_after`: tasks submitted before the first one runs, None
    for all. `submit_cycles`, `dispatch_cycles`, `retire_cycles`: an AICPU's cost per task.
    `bytes_per_cycle`: of the memory that all cores share, 0.0 for no bound. `columns`: what is said about each task. `n_ranks`: of a mesh,
    0 without one; each has as many workers, and of the first one's pools the last ones are the links that `links` names. `hop_cycles`: by
    which an edge arrives later for each step between the workers of a grid of `grid_columns`, row by row; 0 without a grid. `routes`: None
    where a copy between ranks takes one link.
    """

    n_workers: int = 1
    pool_size: tuple[int, ...] | None = (1,)
    shared: bool = False
    steals: bool = False
    calendar: bool = False
    starts: tuple[int, ...] = ()
    at_home: bool = False
    release: Release = Release.IMMEDIATE
    release_n: int = 0
    release_every: tuple[int, int] = (0, 1)
    window: int = 0
    window_unit: WindowUnit = WindowUnit.TASKS
    full_window: FullWindow = FullWindow.STALL
    start_after: int | None = 0
    submit_cycles: int = 0
    dispatch_cycles: int = 0
    retire_cycles: int = 0
    bytes_per_cycle: float = 0.0
    columns: frozenset[TaskField] = frozenset()
    more: tuple[WindowRule, ...] = ()
    n_ranks: int = 0
    links: tuple[str, ...] = ()
    hop_cycles: int = 0
    grid_columns: int = 0
    routes: Routes | None = None

    @property
    def may_fill_links(self) -> bool:
        """Whether links have buffers that copies can fill."""
        return self.routes is not None and self.routes.buffers > 0

    @property
    def workers_of_rank(self) -> int:
        """The workers of one rank of the mesh."""
        return self.n_workers // max(1, self.n_ranks)

    @property
    def windows(self) -> tuple[WindowRule, ...]:
        """All windows, by unit; none of size 0."""
        main = (WindowRule(self.window, self.window_unit, self.full_window),) if self.window else ()
        return (*main, *self.more)

    @property
    def task_window(self) -> int:
        """The window in tasks; 0 if there is none or it is only counted."""
        return next((bound.size for bound in self.windows if bound.unit is WindowUnit.TASKS and bound.full is not FullWindow.BENCHMARK), 0)

    @property
    def may_abort(self) -> bool:
        """Whether a full window ends the run."""
        return any(bound.full is FullWindow.ABORT for bound in self.windows)

    @property
    def counts_edges(self) -> bool:
        """Whether a record has to keep all edges: a window counts them, or they are under way when their source has ended."""
        return self.hop_cycles > 0 or any(bound.unit is WindowUnit.EDGES for bound in self.windows)

    @property
    def window_text(self) -> str:
        """The windows in words: `window of 8192 tasks`."""
        return " and ".join(bound.text for bound in self.windows) or WindowRule(0, self.window_unit).text

    def window_of(self, unit: WindowUnit) -> WindowRule:
        """Return the window of a unit, which there is."""
        return next(bound for bound in self.windows if bound.unit is unit)

    def record_options(self, max_tasks: int) -> dict[str, int]:
        """Return the fields of `pto_record_options`, for a record of at most `max_tasks` tasks.

        With a calendar the record keeps all tasks, because only all tasks determine which one an executor begins with. A window of bytes
        then frees no memory: in simulated time a tensor leaves the window with its writer, and the calendar may run its readers later.
        Of several windows the one of bytes frees memory, else the first that follows the order of submission.
        """
        held = {bound.unit: bound.size for bound in self.windows if bound.full is not FullWindow.BENCHMARK}
        freeing = (*(() if self.calendar else (WindowUnit.BYTES,)), WindowUnit.TASKS, WindowUnit.ENTRIES)
        unit = next((unit for unit in freeing if unit in held), self.window_unit)
        options = {"max_tasks": 0 if self.calendar else max_tasks, "window": held[unit] if unit in freeing and unit in held else 0,
                   "window_unit": int(min(unit, WindowUnit.ENTRIES)), "keep": sum(1 << column.value for column in self.columns)}
        return {**options, "forgets_nothing": 1} if self.counts_edges else options

    def execute_options(self) -> dict[str, int]:
        """Return the fields of `pto_execute_options`, for host threads."""
        places = Places.CALENDAR if self.calendar else Places.HOME if self.at_home else Places.ANY
        return {"places": int(places), "by_priority": int(TaskField.PRIORITY in self.columns)}

    def sim_options(self) -> dict[str, int | float | tuple[int, ...]]:
        """Return the fields of `pto_sim_options`, except pool sizes, starts and the windows of `more`."""
        routes: dict[str, int | float | tuple[int, ...]] = {} if self.routes is None else {
            "route": int(RouteKind.TORUS if self.routes.axes else RouteKind.SWITCH), "n_axes": len(self.routes.axes),
            "axes": self.routes.axes, "rank_workers": self.workers_of_rank, "link_pool": len(self.pool_size or ()) - len(self.links),
            "link_buffers": self.routes.buffers}
        return {
            **routes, "n_workers": self.n_workers, "is_shared": int(self.shared), "steals": int(self.steals),
            "is_calendar": int(self.calendar), "n_starts": len(self.starts),
            "timing": int(self.release), "timing_n": self.release_n, "release_num": self.release_every[0],
            "release_den": self.release_every[1], "window": self.window, "window_unit": int(self.window_unit),
            "window_mode": int(self.full_window), "start_after": _AFTER_ALL if self.start_after is None else self.start_after,
            "submit_cycles": self.submit_cycles, "dispatch_cycles": self.dispatch_cycles, "retire_cycles": self.retire_cycles,
            "bytes_per_cycle": self.bytes_per_cycle, "n_more": len(self.more), "hop_cycles": self.hop_cycles,
            "grid_columns": self.grid_columns}


def print_rules(rules: ExecutionRules) -> Iterator[str]:
    """Yield the rules that differ from the defaults, and the window, as text: `4 executors`, `one queue`, `window 8192`."""
    yield counted(rules.n_workers, "executor") if rules.n_workers else "executors by calendar"
    if rules.n_ranks:
        yield f"of {counted(rules.n_ranks, 'rank')}"
    if rules.routes is not None:
        yield "links through a switch" if not rules.routes.axes else f"links around {' x '.join(map(str, rules.routes.axes))} ranks"
        yield from (f"{counted(n, 'buffer')} a link" for n in (rules.routes.buffers,) if n)
    if rules.grid_columns:
        yield f"in a grid of {counted(rules.grid_columns, 'column')}, {counted(rules.hop_cycles, 'cycle')} a step"
    if rules.pool_size is None:
        yield "each with a pool of one for every number that tasks name"
    elif rules.pool_size != (1,):
        yield f"each with {' + '.join(map(str, rules.pool_size))} cores"
    yield from (text for text, on in (("one queue", rules.shared), ("idle ones steal", rules.steals),
                                      ("in the order of positions", rules.calendar),
                                      ("each task from its start on", bool(rules.starts))) if on)
    match rules.release:
        case Release.IMMEDIATE:
            pass
        case Release.BATCHED:
            yield f"released {rules.release_n} at a time"
        case Release.INTERLEAVED:
            yield f"{counted(rules.release_n, 'lane')} in turn"
        case Release.RATE:
            over = f"/{rules.release_every[1]}" * (rules.release_every[1] != 1)
            yield f"released every {rules.release_every[0]}{over} cycle{'s' * (rules.release_every != (1, 1))}"
    if rules.start_after is None or rules.start_after > 0:
        yield f"start after {'all tasks' if rules.start_after is None else counted(rules.start_after, 'task')}"
    for bound in rules.windows or (WindowRule(rules.window, rules.window_unit, rules.full_window),):
        unit = "" if bound.unit is WindowUnit.TASKS else f" {bound.unit.name.lower()}"
        full = "" if bound.full is FullWindow.STALL else f", {bound.full.name.lower()} when full"
        yield f"window {bound.size}{unit}{full}"
    costs = (rules.submit_cycles, rules.dispatch_cycles, rules.retire_cycles)
    if any(costs):
        yield "a task costs {} cycles to submit, {} to dispatch, {} to retire".format(*costs)
    if rules.bytes_per_cycle:
        yield f"memory {rules.bytes_per_cycle:g} bytes a cycle"
