"""Define `ExecutionRules`: what a schedule says about all tasks, in numbers of one arch.

What it says about a single task is in the task's `Submit`. The simulator enforces the rules; `pto_sim_options` has the same fields in C.
"""

from __future__ import annotations

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

    def amount(self, n: int) -> str:
        """Return an amount of this unit in words: `1 task`, `64 bytes`, `2 entries`."""
        return counted(n, *_AMOUNTS[self])


_AMOUNTS = {WindowUnit.TASKS: ("task",), WindowUnit.BYTES: ("byte",), WindowUnit.ENTRIES: ("entry", "entries")}


class FullWindow(IntEnum):
    """PTO_WINDOW_: the behaviour of a full window."""

    STALL = 0
    ABORT = 1
    BENCHMARK = 2


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


class TaskField(Enum):
    """PTO_KEEP_: what a schedule may say about each task beside worker and cost; the value is the bit's position."""

    LANE = 0
    POOL = 1
    PRIORITY = 2
    POSITION = 3
    BYTES = 4


@dataclass(frozen=True, slots=True)
class ExecutionRules:
    """How tasks get to executors.

    `n_workers`: AICPUs, the homes of tasks; 0 if a calendar leaves the number to the tasks. `pool_size`: executors of each pool per worker;
    None: pools of one executor, as many as tasks name. `shared`: one ready queue per pool for all workers. `steals`: an idle executor
    takes ready tasks of other workers. `calendar`: an executor runs its tasks in the order of their positions; `starts`: by task, the
    earliest start cycle, () for none. `at_home`: tasks of one home belong together, so host threads run them at their home. `release_n`:
    size of a batch, or number of lanes taking turns; `release_every`: cycles between two releases, as numerator and denominator. `window`:
    0 for none. `start_after`: tasks submitted before the first one runs, None for all. `submit_cycles`, `dispatch_cycles`,
    `retire_cycles`: an AICPU's cost per task.
    `bytes_per_cycle`: of the memory that all cores share, 0.0 for no bound. `columns`: what is said about each task.
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

    @property
    def held_window(self) -> int:
        """The window in its unit; 0 if there is none or it is only counted."""
        return 0 if self.full_window is FullWindow.BENCHMARK else self.window

    @property
    def task_window(self) -> int:
        """The window in tasks; 0 if there is none or it has another unit."""
        return self.held_window if self.window_unit is WindowUnit.TASKS else 0

    @property
    def window_text(self) -> str:
        """The window in words: `window of 8192 tasks`."""
        return f"window of {self.window_unit.amount(self.window)}"

    def record_options(self, max_tasks: int) -> dict[str, int]:
        """Return the fields of `pto_record_options`, for a record of at most `max_tasks` tasks.

        With a calendar the record keeps all tasks, because only all tasks determine which one an executor begins with. A window of bytes
        then frees no memory: in simulated time a tensor leaves the window with its writer, and the calendar may run its readers later.
        """
        window = 0 if self.calendar and self.window_unit is WindowUnit.BYTES else self.held_window
        return {"max_tasks": 0 if self.calendar else max_tasks, "window": window, "window_unit": int(self.window_unit),
                "keep": sum(1 << column.value for column in self.columns)}

    def execute_options(self) -> dict[str, int]:
        """Return the fields of `pto_execute_options`, for host threads."""
        places = Places.CALENDAR if self.calendar else Places.HOME if self.at_home else Places.ANY
        return {"places": int(places), "by_priority": int(TaskField.PRIORITY in self.columns)}

    def sim_options(self) -> dict[str, int | float]:
        """Return the fields of `pto_sim_options`, except pool sizes and starts."""
        return {
            "n_workers": self.n_workers, "is_shared": int(self.shared), "steals": int(self.steals), "is_calendar": int(self.calendar),
            "n_starts": len(self.starts),
            "timing": int(self.release), "timing_n": self.release_n, "release_num": self.release_every[0],
            "release_den": self.release_every[1], "window": self.window, "window_unit": int(self.window_unit),
            "window_mode": int(self.full_window), "start_after": _AFTER_ALL if self.start_after is None else self.start_after,
            "submit_cycles": self.submit_cycles, "dispatch_cycles": self.dispatch_cycles, "retire_cycles": self.retire_cycles,
            "bytes_per_cycle": self.bytes_per_cycle}


def print_rules(rules: ExecutionRules) -> Iterator[str]:
    """Yield the rules that differ from the defaults, and the window, as text: `4 executors`, `one queue`, `window 8192`."""
    yield counted(rules.n_workers, "executor") if rules.n_workers else "executors by calendar"
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
    unit = "" if rules.window_unit is WindowUnit.TASKS else f" {rules.window_unit.name.lower()}"
    full = "" if rules.full_window is FullWindow.STALL else f", {rules.full_window.name.lower()} when full"
    yield f"window {rules.window}{unit}{full}"
    costs = (rules.submit_cycles, rules.dispatch_cycles, rules.retire_cycles)
    if any(costs):
        yield "a task costs {} cycles to submit, {} to dispatch, {} to retire".format(*costs)
    if rules.bytes_per_cycle:
        yield f"memory {rules.bytes_per_cycle:g} bytes a cycle"
