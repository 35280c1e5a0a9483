"""Keep what kernels print while tasks run, and show it in program order after the run.

Both executors keep the same values under the same bounds, so both show the same text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pto_wsp.artifact.build import Runtime
from pto_wsp.ir.kernel import Print, Value
from pto_wsp.ir.kernel_walk import prints_of
from pto_wsp.ir.plan import TaskPlan
from pto_wsp.ir.plan_walk import submits
from pto_wsp.ir.tile import TileType
from pto_wsp.ops.rounding import Array
from pto_wsp.run.failures import task_name
from pto_wsp.values import dataclass

MAX_BYTES = 8 << 20        # bytes of elements and records kept per run
RECORD_BYTES = 128         # bytes charged for a value beside its elements: PTO_PRINT_BYTES


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """A printed value: the task (call and indices), the print statement, the shape, and the elements that are kept."""

    task: int
    site: int
    index: tuple[int, ...]
    statement: int
    shape: tuple[int, int]
    kept: Array


@dataclass(frozen=True, slots=True, eq=False)
class Prints:
    """What a run printed, in program order, and how many later values were dropped."""

    shown: tuple[Shown, ...] = ()
    n_dropped: int = 0
    shortened: tuple[int, int] = (1000, 3)      # (threshold, edge): above `threshold` elements, `edge` at either end are kept


def has_prints(plan: TaskPlan) -> bool:
    """Tell whether a kernel of the plan prints."""
    return any(prints_of(use.kernel) for use in plan.kernels)


def print_text(name: str, stmt: Print, value: Array) -> str:
    """Return the text of one value: `rmsnorm[b=1] acc = …`; a tile is below its name and type."""
    label = stmt.label or f"line {stmt.span.line}"
    if isinstance(stmt.value, Value):
        shown = TileType(value.shape[0], value.shape[1], stmt.value.type.dtype)
        return f"{name} {label}: {shown!r}\n{value}\n"
    return f"{name} {label} = {value[0, 0]}\n"


def run_text(plan: TaskPlan, prints: Prints) -> str:
    """Return everything that a run printed, as text."""
    sites = submits(plan)
    statements = [prints_of(use.kernel) for use in plan.kernels]
    lines: list[str] = []
    with np.printoptions(threshold=prints.shortened[0], edgeitems=prints.shortened[1]):   # the options in effect when the values were kept
        for shown in prints.shown:
            task = sites[shown.site]
            lines.append(print_text(task_name(plan, task, shown.index), statements[task.kernel][shown.statement], _whole(shown)))
    if prints.n_dropped:
        lines.append(f"pto.print: {prints.n_dropped} more values were dropped, a run keeps {MAX_BYTES >> 20} MiB of them: print less, "
                     "or smaller tiles\n")
    return "".join(lines)


class PrintKeeper:
    """Keeps the prints of the interpreter's tasks, in order, up to the bound."""

    def __init__(self) -> None:
        self._shown: list[Shown] = []
        self._n_bytes = 0
        self._n_dropped = 0
        self._threshold, self._edge = shortening()

    def of_task(self, task: int, site: int, index: tuple[int, ...]) -> Callable[[Print, Array], None]:
        """Return the function that keeps one task's prints."""
        def show(stmt: Print, value: Array) -> None:
            kept = self._shortened(value)
            if self._n_dropped or self._n_bytes + RECORD_BYTES + kept.nbytes > MAX_BYTES:
                self._n_dropped += 1
                return
            self._n_bytes += RECORD_BYTES + kept.nbytes
            self._shown.append(Shown(task, site, index, stmt.id, (value.shape[0], value.shape[1]), kept))
        return show

    def _shortened(self, value: Array) -> Array:
        edge = self._edge
        if value.size <= self._threshold:
            return value.copy()
        for axis, extent in enumerate(value.shape):
            if extent > 2 * edge:
                value = np.take(value, [*range(edge), *range(extent - edge, extent)], axis)
        return value.copy()

    def prints(self) -> Prints:
        """Return the kept values, in program order of the tasks."""
        return Prints(tuple(sorted(self._shown, key=lambda shown: shown.task)), self._n_dropped, (self._threshold, self._edge))


def shortening() -> tuple[int, int]:
    """Return NumPy's current print options: (threshold, edgeitems)."""
    options: Any = np.get_printoptions()
    return int(min(options["threshold"], (1 << 62))), int(options["edgeitems"])


def new_prints(runtime: Runtime, shortened: tuple[int, int]) -> Any:
    """Return the runtime library's store of printed values."""
    threshold, edge = shortened
    raw = runtime.lib.pto_prints_new(runtime.ffi.new("pto_prints_options *",
                                                     {"max_bytes": MAX_BYTES, "threshold": threshold, "edge": edge}))
    if raw == runtime.ffi.NULL:
        raise MemoryError("no memory for what kernels print")
    return runtime.ffi.gc(raw, runtime.lib.pto_prints_free)


def read_prints(runtime: Runtime, raw: Any, plan: TaskPlan, shortened: tuple[int, int]) -> Prints:
    """Return the values that the library kept."""
    view = runtime.ffi.new("pto_prints_view *")
    runtime.lib.pto_prints_read(raw, view)
    sites = submits(plan)
    statements = [prints_of(use.kernel) for use in plan.kernels]
    shown: list[Shown] = []
    for k in range(view.n):
        row = view.rows[k]
        stmt = statements[sites[row.site].kernel][row.statement]
        dtype = stmt.value.type.dtype if isinstance(stmt.value, Value) else stmt.value.dtype
        kept = np.frombuffer(runtime.ffi.buffer(view.data + row.data, row.size_bytes), dtype.np)
        shown.append(Shown(row.task, row.site, tuple(row.index[0:row.n_index]), row.statement, (row.rows, row.cols),
                           kept.reshape(row.kept_rows, row.kept_cols).copy()))
    return Prints(tuple(shown), view.n_total - view.n, shortened)


def until(prints: Prints, task: int) -> Prints:
    """Return the prints of tasks up to `task`: prints of later tasks depend on the threads."""
    shown = tuple(shown for shown in prints.shown if shown.task <= task)
    return replace(prints, shown=shown, n_dropped=prints.n_dropped if len(shown) == len(prints.shown) else 0)


def _whole(shown: Shown) -> Array:
    """Return an array of the full shape that NumPy prints identically, because only the edges of a long array are printed."""
    kept, shape = shown.kept, shown.shape
    if kept.shape == shape:
        return kept
    value = np.zeros(shape, kept.dtype)
    rows, cols = (_edges(few, full) for few, full in zip(kept.shape, shape, strict=True))
    for row in rows:
        for col in cols:
            value[row, col] = kept[row, col]
    return value


def _edges(few: int, full: int) -> tuple[slice, ...]:
    """Return the slices of the kept elements, valid for both the kept and the full array."""
    return (slice(None),) if few == full else (slice(few // 2), slice(-(few // 2), None))
