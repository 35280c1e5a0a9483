"""Name the values of a traced function after the variables of its body, which the bytecode tells.

    normed = x / np.sqrt(np.mean(x * x))     the quotient is `normed`, inside it stand `normed.mul`, `normed.mean`, `normed.sqrt`
    share = softmax(score)                   what the call stores first is `softmax.peak`, what it returns `share`
    return normed @ w                        `out`; of a tuple `out[0]`, `out[1]`

The second value of a name is `x#2`.
"""

from __future__ import annotations

import dis
import sys
from bisect import bisect_right
from functools import lru_cache
from types import CodeType, FrameType

from pto_wsp.source import PACKAGE_DIR, is_internal
from pto_wsp.values import dataclass

RESULT = "out"       # the name of what a function returns without a name
_LIBRARY = f"{PACKAGE_DIR}tt/library.py"      # written in the language of users: its variables are names, too
_SKIPPED = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "KW_NAMES", "RESUME"})
_FARTHEST = 400      # instructions from a call to the end of its statement


@dataclass(frozen=True, slots=True)
class StatementTarget:
    """The target of a statement. `name`: the first variable, "" for none; `returns`: the statement returns the value.

    `direct`: the value of the current call itself is assigned, not an expression with the call. `names`: the variables of an unpacking.
    """

    name: str
    direct: bool
    returns: bool = False
    names: tuple[str, ...] = ()


class ValueNames:
    """The names that a trace has given."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._calls: dict[FrameType, str] = {}     # the frames are kept, so that none is made anew at the place of another

    def unique(self, name: str) -> str:
        """Return a name, with a number from the second time on."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"

    def of_value(self, op: str, root: CodeType) -> tuple[str, bool]:
        """Return the name of the value that is being made by an operation, and whether the user's variable or return says it."""
        frames = frames_of_body(root)
        word = op
        for at, frame in enumerate(frames):
            target = target_of_statement(frame)
            prefix = self._prefix(frames[at:])
            if target.returns and at + 1 < len(frames):
                if target.direct:
                    word = frame.f_code.co_name
                    continue
                return f"{prefix}{word}", False
            name = target.name or word
            if target.direct or not target.name:
                return f"{prefix}{name}", target.direct and not target.returns
            return f"{prefix}{name}.{word}", False
        return word, False

    def _prefix(self, frames: list[FrameType]) -> str:
        """Return the names of the calls that lead to the innermost of these frames: `softmax#2.`"""
        prefix = ""
        for frame in reversed(frames[:-1]):
            if frame not in self._calls:
                self._calls[frame] = self.unique(f"{prefix}{frame.f_code.co_name}()").replace("()", "")
            prefix = f"{self._calls[frame]}."
        return prefix


def frames_of_body(root: CodeType) -> list[FrameType]:
    """Return the running frames of a body, innermost first: those of users and of the library, up to the frame of `root`."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if (not is_internal(code) or code.co_filename == _LIBRARY) and not code.co_name.startswith("<"):
            frames.append(frame)
        if code is root:
            break
        frame = frame.f_back
    return frames


def target_of_statement(frame: FrameType) -> StatementTarget:
    """Return the target of the statement that a frame executes: the variables that it assigns, or the function's result."""
    return _target(frame.f_code, frame.f_lasti)


@lru_cache(maxsize=512)
def _instructions(code: CodeType) -> tuple[tuple[dis.Instruction, ...], tuple[int, ...]]:
    listed = tuple(dis.get_instructions(code))
    return listed, tuple(each.offset for each in listed)


@lru_cache(maxsize=4096)
def _target(code: CodeType, offset: int) -> StatementTarget:
    """Follow the value of the instruction at an offset on Python's stack, until something stores it, or what is computed of it."""
    listed, offsets = _instructions(code)
    position = bisect_right(offsets, offset)
    if listed[position - 1].opname == "PRECALL":       # Python 3.11 runs a function of C there, once it is called often, and CALL never
        position += 1
    direct, above, place = True, 0, -1          # `above`: how many values lie on it; `place`: its place in the tuple that it went into
    for index in range(position, min(position + _FARTHEST, len(listed))):
        each = listed[index]
        name = each.opname
        if name in _SKIPPED:
            continue
        if name == "SWAP":
            above = int(each.argval) - 1 if above == 0 else 0 if above == int(each.argval) - 1 else above
            continue
        if name == "COPY" and above == int(each.argval) - 1 and _stores_name(listed[index + 1]):      # (y := x * 2)
            return StatementTarget(_name_stored(listed[index + 1]), direct and place < 0)
        effect = dis.stack_effect(each.opcode, each.arg if each.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
        if name == "CALL":          # with Python 3.11 PRECALL, which is skipped, drops the arguments
            effect = -1 - int(each.argval)
        pushed = _pushed(name, effect)
        if pushed - effect <= above:          # it works on values above
            above += effect
            continue
        if _stores_name(each):
            return StatementTarget(_name_stored(each), direct and place < 0)
        if name == "UNPACK_SEQUENCE":
            stores = _stored(listed[index + 1:index + 1 + 2 * int(each.argval)], int(each.argval))
            if 0 <= place < len(stores):
                return StatementTarget(stores[place], direct)
            return StatementTarget(stores[0] if stores else "", False, names=stores if direct else ())
        if name in ("STORE_SUBSCR", "STORE_SLICE"):
            return StatementTarget(_container(listed, index), False)
        if name == "STORE_ATTR":
            return StatementTarget(str(each.argval), False)
        if name in ("RETURN_VALUE", "RETURN_GENERATOR"):
            return StatementTarget(RESULT, direct, returns=True)
        if name.startswith(("POP_", "JUMP_IF", "LIST_", "MAP_ADD", "SET_ADD", "YIELD_VALUE", "GET_ITER", "BEFORE_WITH", "FOR_ITER")):
            return StatementTarget("", False)
        if name == "BUILD_TUPLE" and direct and place < 0:
            place = int(each.argval) - 1 - above
        elif name != "BUILD_TUPLE":
            direct, place = False, -1
        above = 0
    return StatementTarget("", False)


def _pushed(name: str, effect: int) -> int:
    """Return how many values an instruction pushes."""
    if name.startswith(("STORE_", "POP_", "RETURN_", "DELETE_", "JUMP_")) or name in ("LIST_APPEND", "SET_ADD", "MAP_ADD", "PRECALL",
                                                                                      "KW_NAMES"):
        return 0
    if name == "UNPACK_SEQUENCE":
        return effect + 1
    if name == "LOAD_METHOD":
        return 2
    if name.startswith(("LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLOSURE", "PUSH_", "COPY")):
        return effect
    return 1


def _stores_name(each: dis.Instruction) -> bool:
    return each.opname.startswith(("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"))


def _name_stored(each: dis.Instruction) -> str:
    return str(each.argval[0] if isinstance(each.argval, tuple) else each.argval)


def _stored(instructions: tuple[dis.Instruction, ...], count: int) -> tuple[str, ...]:
    names: list[str] = []
    for each in instructions:
        if each.opname in _SKIPPED:
            continue
        if not each.opname.startswith("STORE_") or each.opname in ("STORE_SUBSCR", "STORE_SLICE", "STORE_ATTR"):
            break
        names += map(str, each.argval) if isinstance(each.argval, tuple) else [str(each.argval)]
    return tuple(names) if len(names) == count else ()


def _container(listed: tuple[dis.Instruction, ...], index: int) -> str:
    """Return the variable that brackets on the left of `=` stand behind."""
    at = listed[index].positions
    for each in reversed(listed[:index]):
        where = each.positions
        if at is not None and where is not None and each.opname.startswith("LOAD_") and isinstance(each.argval, str) \
                and (where.lineno, where.col_offset) == (at.lineno, at.col_offset):
            return each.argval
    return ""
