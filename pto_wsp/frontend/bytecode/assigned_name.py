"""The name to which the user's statement assigns the result of the call that is running, read from the caller's bytecode."""

from __future__ import annotations

import dis
from bisect import bisect_right
from functools import lru_cache
from types import CodeType, FrameType


def assigned_name(frame: FrameType) -> str | None:
    """Return `acc` when `frame` is executing `acc = call(…)`, None for any other statement."""
    return _stores(frame.f_code).get(_next_offset(frame))


def _next_offset(frame: FrameType) -> int:
    """Return the offset of the instruction after the call; f_lasti stands on the call or on its last cache."""
    offsets = _offsets(frame.f_code)
    after = bisect_right(offsets, frame.f_lasti)
    return offsets[after] if after < len(offsets) else -1


@lru_cache(maxsize=256)
def _offsets(code: CodeType) -> tuple[int, ...]:
    return tuple(i.offset for i in dis.get_instructions(code))


@lru_cache(maxsize=256)
def _stores(code: CodeType) -> dict[int, str]:
    """Return the name that each storing instruction stores to, by offset."""
    plain = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
    return {i.offset: str(i.argval[0] if isinstance(i.argval, tuple) else i.argval)   # a tuple: fused with what follows
            for i in dis.get_instructions(code) if i.opname.startswith(plain)}
