"""Read facts about the user's statement from the caller's bytecode.

The module finds the names that a statement assigns to (of a call, a `for`, a `with`), detects a `with` body left early by break, continue
or return, and finds a variable that a traced body carries from one iteration to the next.

Leaving early: Python calls `__exit__` the same way in all cases. After a complete body, execution continues where it would after a
swallowed exception, namely behind the statement; if the current call continues elsewhere, part of the body was skipped.

Carried variables: `acc = acc + x` in a loop reads the previous iteration's value in Python. A traced body runs once, so every iteration
would read the value from before the loop. State belongs in buffers.
"""

from __future__ import annotations

import dis
import itertools
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType, UnionType

import numpy as np

from pto_wsp.errors import CarriedValueError, SymbolicControlError
from pto_wsp.ir.symbolic import Symbolic
from pto_wsp.source import Span
from pto_wsp.values import dataclass


# -- assigned names ----------------------------------------------------------------------------------------------------
def assigned_name(frame: FrameType) -> str | None:
    """Return `acc` if `frame` is executing `acc = call(…)`, None for any other statement."""
    return _stores(frame.f_code).get(_next_offset(frame))


def _next_offset(frame: FrameType) -> int:
    """Return the offset of the instruction after the call; f_lasti is the call or its last cache entry."""
    offsets = _offsets(frame.f_code)
    after = bisect_right(offsets, frame.f_lasti)
    return offsets[after] if after < len(offsets) else -1


@lru_cache(maxsize=256)
def _offsets(code: CodeType) -> tuple[int, ...]:
    return tuple(i.offset for i in dis.get_instructions(code))


@lru_cache(maxsize=256)
def _stores(code: CodeType) -> dict[int, str]:
    """Return the name that each store instruction stores to, by offset."""
    plain = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
    return {i.offset: str(i.argval[0] if isinstance(i.argval, tuple) else i.argval)   # a tuple: fused with the next instruction
            for i in dis.get_instructions(code) if i.opname.startswith(plain)}


_LONGEST_TARGET = 12   # most instructions that store loop variables


def loop_names(frame: FrameType, count: int) -> tuple[str, ...] | None:
    """Return the `count` names that the `for` running in `frame` stores to; None if it does not store that many plain names."""
    after = instructions_after(frame.f_code, frame.f_lasti, only="FOR_ITER")
    if after and after[0] == ("UNPACK_SEQUENCE", count) and count > 1:
        after = after[1:]
    names = stored_names(after, count)
    return names if len(names) == count else None


def takes_apart_otherwise(frame: FrameType, count: int) -> bool:
    """Tell whether the `for` running in `frame` unpacks its value into other than `count` values: `for k, b in enumerate(…)`."""
    after = instructions_after(frame.f_code, frame.f_lasti, only="FOR_ITER")
    if not after or after[0][0] != "UNPACK_SEQUENCE":
        return False
    next_name = next((name for name, _ in after[1:] if not name.startswith("STORE_") or name == "STORE_FAST_LOAD_FAST"), "")
    return after[0] != ("UNPACK_SEQUENCE", count) or next_name.startswith("UNPACK_")


def stored_names(instructions: tuple[tuple[str, object], ...], count: int) -> tuple[str, ...]:
    """Return the plain names that the leading store instructions store to, at most `count`."""
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
def _loop_offsets(code: CodeType) -> tuple[int, ...]:
    return tuple(instruction.offset for instruction in _listed(code))


@lru_cache(maxsize=256)
def _listed(code: CodeType) -> tuple[dis.Instruction, ...]:
    return tuple(dis.get_instructions(code))


def instructions_after(code: CodeType, offset: int, only: str = "") -> tuple[tuple[str, object], ...]:
    """Return (name, argument) of the instructions after an offset.

    The result is empty if `only` is given and the instruction at the offset is another.
    """
    position = bisect_right(_loop_offsets(code), offset) - 1     # during a call, f_lasti may be the call's last cache entry
    if position < 0 or only not in ("", _listed(code)[position].opname):
        return ()
    following = (i for i in islice(_listed(code), position + 1, None) if i.opname not in ("CACHE", "EXTENDED_ARG"))
    return tuple((i.opname, i.argval) for i in islice(following, _LONGEST_TARGET))


@dataclass(frozen=True, slots=True)
class AssignTarget:
    """How many values the statement unpacks (0: it drops the value), and their names if they are plain names."""

    count: int
    names: tuple[str, ...] = ()


def target_of(frame: FrameType) -> AssignTarget:
    """Return the target of the value that the instruction running in `frame` produces: names, nothing, or (one value) an expression."""
    following = instructions_after(frame.f_code, frame.f_lasti)
    if not following:
        return AssignTarget(1)
    name, argument = following[0]
    if name == "POP_TOP":
        return AssignTarget(0)
    count = argument if name == "UNPACK_SEQUENCE" and isinstance(argument, int) else 1
    names = stored_names(following[1:] if name == "UNPACK_SEQUENCE" else following, count)
    return AssignTarget(count, names if len(names) == count else ())


# -- leaving a `with` body ---------------------------------------------------------------------------------------------
_PASSED_OVER = frozenset({"NOP", "CACHE", "POP_TOP", "POP_EXCEPT", "EXTENDED_ARG", "NOT_TAKEN"})


def left_early_error(what: str, span: Span, help: str) -> SymbolicControlError:
    """Return the error for a body that break, continue or return leaves."""
    return SymbolicControlError(what, span, expected="a body that runs to its end", found="break, continue or return", help=help)


def left_early(frame: FrameType, entered_at: int) -> bool:
    """Tell whether the `__exit__` that `frame` is calling leaves the body early. `entered_at`: `f_lasti` at `__enter__`.

    False for unknown bytecode: on a future Python a missed mistake is better than a refused correct kernel.
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
        return False   # not opened by a `with`: an ExitStack, or a direct call
    swallowed = handler
    while not (instructions[swallowed].opname.startswith("POP_JUMP") and "TRUE" in instructions[swallowed].opname):
        swallowed = following[swallowed]

    def goes_on_at(offset: int) -> object:
        """Return where execution continues from an offset: an offset, or the value that the function returns at once."""
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
    """Yield (start, end, handler) of each covered range in bytes, from an exception table.

    Source: CPython, InternalDocs/exception_handling.md: integers of 6 bits per byte, bit 6 set if more bytes follow.
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


# -- carried variables -------------------------------------------------------------------------------------------------
NUMBERS = Symbolic | int | float | str | np.generic


@dataclass(frozen=True, slots=True)
class LoopCarried:
    """A variable that a body reads and then assigns: the place of the assignment, and the value before the body."""

    name: str
    span: Span
    before: object

    def refusal(self, kind: str, when: str, help: str, where: str = "") -> CarriedValueError:
        """Return the error K109. `kind`: a loop or a branch, `where` it stands; `when`: in which runs of the body the old value is read."""
        return CarriedValueError(f"`{self.name}` is read in a {kind}{where} and then assigned to", self.span,
                                 found=f"a body that is traced once: `{self.name}` is read as it was before the {kind}, {when}", help=help)


def held_by_names(frame: FrameType, kinds: UnionType) -> Mapping[str, object]:
    """Return the frame's variables with values of some types, including globals that the code assigns to."""
    return {name: value for name, value in _variables(frame).items() if isinstance(value, kinds)}


def _variables(frame: FrameType) -> Mapping[str, object]:
    names = _stored_globals(frame.f_code)
    return {**{name: frame.f_globals[name] for name in names if name in frame.f_globals}, **frame.f_locals} if names else frame.f_locals


@lru_cache(maxsize=256)
def _stored_globals(code: CodeType) -> frozenset[str]:
    return frozenset(str(each.argval) for each in dis.get_instructions(code) if each.opname == "STORE_GLOBAL")


def carried_variable(frame: FrameType, start: int, end: int | None, before: Mapping[str, object]) -> LoopCarried | None:
    """Return the first variable that the instructions from `start` to `end` read and then rebind.

    `end` None: to the end of the `for` at `start`. `before`: the variables before these instructions.
    """
    now = _variables(frame)
    changed = {name for name, value in before.items() if name in now and not _same(value, now[name])}
    if not changed:
        return None
    if end is None:
        end = _loop_end(frame.f_code, start)
    read: set[str] = set()
    for offset, stores, name, span in _accesses(frame.f_code):
        if not start < offset < end or name not in changed:
            continue
        if not stores:
            read.add(name)
        elif name in read:
            return LoopCarried(name, span, before[name])
        else:
            changed.discard(name)   # assigned before it is read: local to the body
    return None


def _same(before: object, now: object) -> bool:
    if before is now:
        return True
    if isinstance(before, Symbolic) and isinstance(now, Symbolic):
        return before.node == now.node
    plain = int | float | str | np.generic
    return isinstance(before, plain) and isinstance(now, plain) and type(before) is type(now) and bool(before == now)


@lru_cache(maxsize=64)
def _accesses(code: CodeType) -> tuple[tuple[int, bool, str, Span], ...]:
    """Return (offset, whether it is a store, variable, place) of every variable access of the function, in order."""
    return tuple(access for each in dis.get_instructions(code) for access in _accesses_of(code, each))


def _accesses_of(code: CodeType, each: dis.Instruction) -> Iterator[tuple[int, bool, str, Span]]:
    verbs = [word for word in each.opname.split("_") if word in ("LOAD", "STORE")]
    if not any(kind in each.opname for kind in ("FAST", "DEREF", "GLOBAL")):
        return
    names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
    at = each.positions
    line = (at.lineno if at else None) or 0
    column = (at.col_offset if at else None) or 0
    span = Span(code.co_filename, line, column + 1, (at.end_lineno if at else None) or 0, ((at.end_col_offset if at else None) or 0) + 1)
    for verb, name in zip(verbs, names, strict=False):
        yield each.offset, verb == "STORE", str(name), span


@lru_cache(maxsize=256)
def _loop_end(code: CodeType, start: int) -> int:
    for each in dis.get_instructions(code):
        if each.offset == start:
            return each.argval if each.opname == "FOR_ITER" else start
    return start
