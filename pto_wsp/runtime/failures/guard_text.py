"""A guard that failed, from either executor, and how it reads in the user's error."""

from __future__ import annotations

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Guard
from pto_wsp.ops.whole import IndexFault
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class PieceFault:
    """Where a piece of a region starts, and the last row and column that it may start at."""

    row: int
    col: int
    last_row: int
    last_col: int


@dataclass(frozen=True, slots=True)
class Failure:
    """The number of the guard that failed, and the index or the piece that lies outside."""

    guard: int
    fault: IndexFault | PieceFault | None = None


@dataclass(frozen=True, slots=True)
class Described:
    """The parts of the user's error: what failed, what would have been right, what was there."""

    what: str
    expected: str
    found: str | None


def describe(guard: Guard, fault: IndexFault | PieceFault | None) -> Described:
    """Return what a guard that failed means to the user."""
    index = fault if isinstance(fault, IndexFault) else None
    match guard.stmt:
        case k.Load() | k.Store():
            return _piece(f"{guard.what} lies outside the region that is bound", fault if isinstance(fault, PieceFault) else None)
        case k.Compute():
            return _outside(guard, index)
        case k.Gather() | k.Scatter() if index is not None and index.row < 0:
            columns = f"columns {index.col} .. {index.col + index.value - 1}"
            return Described(f"{guard.what}: columns outside the region that is bound", f"columns inside 0 .. {index.extent - 1}", columns)
        case k.Gather() | k.Scatter():
            return _outside(guard, index)


def _outside(guard: Guard, index: IndexFault | None) -> Described:
    allowed = "an index inside" if index is None else f"0 .. {index.extent - 1}" if index.extent else "none: nothing is there"
    found = None if index is None else f"{index.value}, at row {index.row} and column {index.col} of the index"
    return Described(f"{guard.what}: an index lies outside", allowed, found)


def _piece(what: str, fault: PieceFault | None) -> Described:
    if fault is None:
        return Described(what, "rows and columns inside the view, or valid=... for a piece that may be short", None)
    limits = [f"{name} 0 .. {last}" if last >= 0 else f"{-last} fewer {name}s"
              for name, last in (("row", fault.last_row), ("column", fault.last_col))]
    return Described(what, f"a piece at {limits[0]}, {limits[1]}, or valid=... for one that may be short",
                     f"row {fault.row}, column {fault.col}")
