"""Tell whether a `with` statement was left before its end, by break, continue or return.

Python calls `__exit__` the same way in all these cases. The bytecode knows: an exception that a context manager swallows goes on
behind the statement, and so does a body that ran to its end; where the call at hand goes on elsewhere, something was skipped.
"""

from __future__ import annotations

import dis
import itertools
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType

_PASSED_OVER = frozenset({"NOP", "CACHE", "POP_TOP", "POP_EXCEPT", "EXTENDED_ARG", "NOT_TAKEN"})


def left_early(frame: FrameType, entered_at: int) -> bool:
    """Tell whether the `__exit__` that `frame` is calling leaves early. `entered_at`: `f_lasti` when `__enter__` was called.

    False where the bytecode is not as it is known here: a Python to come had better miss a mistake than refuse a sound kernel.
    """
    try:
        return _left_early(frame.f_code, entered_at, frame.f_lasti)
    except (KeyError, ValueError):
        return False


@lru_cache(maxsize=64)
def _left_early(code: CodeType, entered_at: int, leaving_at: int) -> bool:
    instructions = {each.offset: each for each in dis.get_instructions(code)}
    order = sorted(instructions)
    following = dict(itertools.pairwise(order))
    body = following.get(entered_at, -1)
    handler = next((target for start, end, target in _handlers(code.co_exceptiontable) if start <= body < end), None)
    if handler is None or instructions[following[handler]].opname != "WITH_EXCEPT_START":
        return False   # opened by no `with`: an ExitStack's or a call of its own
    swallowed = handler
    while not (instructions[swallowed].opname.startswith("POP_JUMP") and "TRUE" in instructions[swallowed].opname):
        swallowed = following[swallowed]

    def goes_on_at(offset: int) -> object:
        """Return where execution goes on from an offset: an offset, or the value that the function returns at once."""
        seen: set[int] = set()
        while offset not in seen:
            seen.add(offset)
            each = instructions[offset]
            if each.opname.startswith("JUMP"):
                offset = each.argval
            elif each.opname in _PASSED_OVER:
                offset = following[offset]
            elif each.opname == "RETURN_CONST":
                return "return", each.argval
            else:
                at_once = each.opname == "LOAD_CONST" and instructions[following[offset]].opname == "RETURN_VALUE"
                return ("return", each.argval) if at_once else offset
        return offset

    return goes_on_at(following[leaving_at]) != goes_on_at(instructions[swallowed].argval)


def _handlers(table: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and handler of each covered range, in bytes, from an exception table.

    Source: CPython, InternalDocs/exception_handling.md: numbers of 6 bits a byte, bit 6 set where more follow.
    """
    numbers: list[int] = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            numbers.append(value)
            value = 0
    for start, length, target, _ in zip(*[iter(numbers)] * 4, strict=True):
        yield 2 * start, 2 * (start + length), 2 * target
