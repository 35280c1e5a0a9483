"""The names that the user's `for` statement gives to its loop variables, read from the caller's bytecode."""

from __future__ import annotations

import dis
from bisect import bisect_right
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType

_LONGEST_TARGET = 12   # instructions that store the loop variables


def loop_names(frame: FrameType, count: int) -> tuple[str, ...] | None:
    """Return the `count` names that the `for` running in `frame` stores to, or None when it does not store that many plain names."""
    after = instructions_after(frame.f_code, frame.f_lasti, only="FOR_ITER")
    if after and after[0] == ("UNPACK_SEQUENCE", count) and count > 1:
        after = after[1:]
    names = stored_names(after, count)
    return names if len(names) == count else None


def takes_apart_otherwise(frame: FrameType, count: int) -> bool:
    """Tell whether the `for` running in `frame` takes apart what it gets, and not into `count` values: `for k, b in enumerate(…)`."""
    after = instructions_after(frame.f_code, frame.f_lasti, only="FOR_ITER")
    if not after or after[0][0] != "UNPACK_SEQUENCE":
        return False
    behind = next((name for name, _ in after[1:] if not name.startswith("STORE_") or name == "STORE_FAST_LOAD_FAST"), "")
    return after[0] != ("UNPACK_SEQUENCE", count) or behind.startswith("UNPACK_")


def stored_names(instructions: tuple[tuple[str, object], ...], count: int) -> tuple[str, ...]:
    """Return the plain names that the first of some instructions store to, at most `count`."""
    names: list[str] = []
    for name, argument in instructions:
        if name.startswith("STORE_") and isinstance(argument, str):
            names.append(argument)
        elif name.startswith("STORE_FAST_STORE_FAST") and isinstance(argument, tuple):
            names.extend(map(str, argument))
        elif name == "STORE_FAST_LOAD_FAST" and isinstance(argument, tuple):
            names.append(str(argument[0]))
        else:
            break
        if len(names) >= count:
            break
    return tuple(names[:count])


@lru_cache(maxsize=256)
def _offsets(code: CodeType) -> tuple[int, ...]:
    return tuple(instruction.offset for instruction in _listed(code))


@lru_cache(maxsize=256)
def _listed(code: CodeType) -> tuple[dis.Instruction, ...]:
    return tuple(dis.get_instructions(code))


def instructions_after(code: CodeType, offset: int, only: str = "") -> tuple[tuple[str, object], ...]:
    """Return the name and argument of what follows an instruction; nothing unless it is called `only`, where that is given."""
    position = bisect_right(_offsets(code), offset) - 1     # while a Python function runs, its call's last cache entry is current
    if position < 0 or only not in ("", _listed(code)[position].opname):
        return ()
    following = (i for i in islice(_listed(code), position + 1, None) if i.opname not in ("CACHE", "EXTENDED_ARG"))
    return tuple((i.opname, i.argval) for i in islice(following, _LONGEST_TARGET))
