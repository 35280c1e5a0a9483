"""The names that a statement gives to what a call, or the `with` around it, returns, read from the caller's bytecode."""

from __future__ import annotations

from types import FrameType

from pto_wsp.frontend.bytecode.loop_names import instructions_after, stored_names
from pto_wsp.values import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """How many values the statement takes apart (0: it drops what it gets), and their names where they are plain ones."""

    count: int
    names: tuple[str, ...] = ()


def target_of(frame: FrameType) -> Target:
    """Return where what the instruction running in `frame` gives goes: `x`, `(x, y)`, nowhere, or (one value) into an expression."""
    following = instructions_after(frame.f_code, frame.f_lasti)
    if not following:
        return Target(1)
    name, argument = following[0]
    if name == "POP_TOP":
        return Target(0)
    count = argument if name == "UNPACK_SEQUENCE" and isinstance(argument, int) else 1
    names = stored_names(following[1:] if name == "UNPACK_SEQUENCE" else following, count)
    return Target(count, names if len(names) == count else ())
