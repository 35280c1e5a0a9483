"""A guard that failed, from either executor, and how it reads in the user's error."""

from __future__ import annotations

from pto_wsp.expr import kernel as k
from pto_wsp.expr.kernel_walk import Guard
from pto_wsp.ops.whole import IndexFault
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """The number of the guard that failed, and the index that lies outside where it is a guard of indices."""

    guard: int
    index: IndexFault | None = None


@dataclass(frozen=True, slots=True)
class Described:
    """The parts of the user's error: what failed, what would have been right, what was there."""

    what: str
    expected: str
    found: str | None


def describe(guard: Guard, index: IndexFault | None) -> Described:
    """Return what a guard that failed means to the user."""
    match guard.stmt:
        case k.Load() | k.Store():
            return Described(f"{guard.what} lies outside the region that is bound",
                             "rows and columns inside the view, or valid=... for a piece that may be short", None)
        case k.Compute():
            allowed = "an index inside" if index is None else f"0 .. {index.extent - 1}" if index.extent else "none: nothing is there"
            found = None if index is None else f"{index.value}, at row {index.row} and column {index.col} of the index"
            return Described(f"{guard.what}: an index lies outside", allowed, found)
