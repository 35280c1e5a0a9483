"""The names that the user's `for` statement gives to its loop variables, read from the caller's bytecode."""

from __future__ import annotations

import dis
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType

_LONGEST_TARGET = 12   # instructions that store the loop variables


def loop_names(frame: FrameType, count: int) -> tuple[str, ...] | None:
    """Return the `count` names that the `for` running in `frame` stores to, or None when it does not store that many plain names."""
    after = _instructions_after(frame.f_code, frame.f_lasti)
    names: list[str] = []
    for name, argument in after:
        if name == "UNPACK_SEQUENCE" and not names and argument == count and count > 1:
            continue
        if name.startswith("STORE_") and isinstance(argument, str):
            names.append(argument)
        elif name.startswith("STORE_FAST_STORE_FAST") and isinstance(argument, tuple):
            names.extend(map(str, argument))
        elif name == "STORE_FAST_LOAD_FAST" and isinstance(argument, tuple):
            names.append(str(argument[0]))
        else:
            break
        if len(names) >= count:
            return tuple(names[:count])
    return None


@lru_cache(maxsize=256)
def _all_instructions(code: CodeType) -> dict[int, int]:
    return {instruction.offset: position for position, instruction in enumerate(_listed(code))}


@lru_cache(maxsize=256)
def _listed(code: CodeType) -> tuple[dis.Instruction, ...]:
    return tuple(dis.get_instructions(code))


def _instructions_after(code: CodeType, offset: int) -> tuple[tuple[str, object], ...]:
    position = _all_instructions(code).get(offset)
    if position is None or _listed(code)[position].opname != "FOR_ITER":
        return ()
    following = (i for i in islice(_listed(code), position + 1, None) if i.opname not in ("CACHE", "EXTENDED_ARG"))
    return tuple((i.opname, i.argval) for i in islice(following, _LONGEST_TARGET))
