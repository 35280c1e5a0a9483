"""Trace a key function on a symbolic task: the policy stores the expression, Python is never called during a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NoReturn, TypeAlias, TypeVar

import numpy as np

from pto_wsp.errors import KeyTraceError, PtoError
from pto_wsp.schedule.policy import KeyExpr, shown_value
from pto_wsp.schedule.process_numbers import process_number
from pto_wsp.source import here
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.symbolic import Symbolic, as_scalar

_MOST_BRACKETS = 1 << 16
BY_NAME = -1    # the id of a Symbol in a key: like loop variables, which one it is comes out at compile


class _NoValue:
    """What a key may take parts of, and nothing else: Python's answers about it would be constants, the same for every task."""

    __slots__ = ()
    _spoken = "the task"

    def _refuse(self, asked: str) -> NoReturn:
        raise KeyTraceError(f"a key asks for {asked} of {self._spoken}", here(), help="a key is arithmetic on t.<loop variable>, "
                            "t.params[k] and t.kernel == name; DispatchPolicy.hash(key, n) hashes the number that a key gives")

    def __hash__(self) -> NoReturn:
        self._refuse("hash()")

    def __str__(self) -> NoReturn:
        self._refuse("str()")

    def __format__(self, spec: str) -> NoReturn:
        self._refuse("format()")

    def __bool__(self) -> NoReturn:
        self._refuse("bool()")

    def __len__(self) -> NoReturn:
        self._refuse("len()")

    def __iter__(self) -> NoReturn:
        self._refuse("iter()")

    def __eq__(self, other: object) -> NoReturn:
        self._refuse("a comparison")

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__

    def __repr__(self) -> str:
        return f"<{self._spoken}, as a key sees it>"


class BracketIndices(_NoValue):
    """`t.params`: the bracket indices of the task's call."""

    __slots__ = ()
    _spoken = "t.params"

    def __getitem__(self, position: int) -> Symbolic:
        if not isinstance(position, int | np.integer) or isinstance(position, bool) or not 0 <= position < _MOST_BRACKETS:
            raise KeyTraceError("t.params takes the place of a bracket index", here(), found=repr(position),
                                expected=f"a whole number in 0 .. {_MOST_BRACKETS - 1}")
        return Symbolic(s.BracketIndex(int(position)))


class LoopName(Symbolic):
    """A loop variable by its name. Of one that walks a sparse row `position` is where the column stands in the indices.

    `default`: what stands for it in tasks that no loop of that name is around.
    """

    __slots__ = ("_default", "_name")

    def __init__(self, name: str, default: s.Scalar | None = None) -> None:
        super().__init__(s.AxisName(name, default))
        self._name, self._default = name, default

    @property
    def position(self) -> Symbolic:
        """Where the column stands in the indices; a task whose loop walks no sparse row has none, but the default."""
        return Symbolic(s.AxisName(f"{self._name}.position", self._default))


class KernelNamed(ABC):
    """What stands for a kernel where a key asks for the task's."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The kernel's name."""


class TaskKernel(LoopName):
    """`t.kernel`: the task's kernel, to be compared with one, or with its name. Any other use is a loop variable of that name."""

    __slots__ = ()
    __hash__ = LoopName.__hash__

    def __init__(self) -> None:
        super().__init__("kernel")

    def __eq__(self, other: object) -> Symbolic:  # type: ignore[override]
        if isinstance(other, str | KernelNamed):
            return Symbolic(s.KernelIs(other if isinstance(other, str) else other.name))
        return super().__eq__(other)

    def __ne__(self, other: object) -> Symbolic:  # type: ignore[override]
        return ~(self == other) if isinstance(other, str | KernelNamed) else super().__ne__(other)


class TaskNames(_NoValue):
    """The task that a key sees: `t.b` and `t.get("b")` are loop variables by name, `t.params` its bracket indices, `t.kernel == "matmul"`
    asks for its kernel. `t.get("b", 0)` is 0 in tasks that no loop of that name is around.
    """

    __slots__ = ("_given",)

    def __init__(self) -> None:
        self._given: list[object] = []      # parts live as long as their task: of two traces that give equal ids, a key asks for none

    @property
    def params(self) -> BracketIndices:
        """The bracket indices."""
        return self._kept(BracketIndices())

    @property
    def kernel(self) -> TaskKernel:
        """The kernel: `t.kernel == "matmul"`, or the kernel itself in place of its name."""
        return self._kept(TaskKernel())

    def get(self, name: str, default: object = None) -> Symbolic:
        """Return the loop variable of that name. `default`: what stands for it in tasks that no loop of that name is around; without one
        such tasks are refused when the workload is compiled.

        Raises: S103 for what is no name, or a default that is no whole number.
        """
        if not isinstance(name, str) or not name.isidentifier():
            raise KeyTraceError("t.get takes the name of a loop variable", here(), found=shown_value(name))
        return self._kept(LoopName(name, None if default is None else _whole_number("the default of t.get", default)))

    def __getattr__(self, name: str) -> Symbolic:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._kept(LoopName(name))

    def _kept(self, part: _Part) -> _Part:
        self._given.append(part)
        return part


_Part = TypeVar("_Part", BracketIndices, LoopName, TaskKernel)
KeyLike: TypeAlias = "Callable[[TaskNames], object] | str | Symbolic | KeyExpr"


def trace_key(key: KeyLike, what: str) -> KeyExpr:
    """Return the expression that `key` computes: a function of the task, a loop variable's name, or an expression.

    Raises: S103 when it cannot be traced to one integer.
    """
    if isinstance(key, KeyExpr):
        return key
    (found,) = _traced(key, what, lambda result: (_key_of(result, what),))
    return found


def trace_keys(key: KeyLike, what: str, count: int) -> tuple[KeyExpr, ...]:
    """Return the expressions that `key` computes, `count` of them.

    Raises: S103 when it cannot be traced to so many integers.
    """
    def keys_of(results: object) -> tuple[KeyExpr, ...]:
        if not isinstance(results, tuple) or len(results) != count:
            raise KeyTraceError(f"the key of {what} gives no {count} whole numbers", here(), expected=f"a tuple of {count}",
                                found=shown_value(results))
        return tuple(_key_of(result, what) for result in results)

    return _traced(key, what, keys_of)


def _traced(key: KeyLike, what: str, read: Callable[[object], tuple[KeyExpr, ...]]) -> tuple[KeyExpr, ...]:
    """Return what `read` makes of the key's answer: of a function, of two of them that agree.

    Raises: S103 for a function whose number is not that of the task: an address, a hash of text, a random number, a count of its calls.
    """
    if isinstance(key, str):
        return read(TaskNames().get(key))
    if isinstance(key, Symbolic):
        return read(key)
    if not callable(key):
        raise KeyTraceError(f"{what} takes a key", here(), expected="lambda t: ..., a loop variable's name, or an expression",
                            found=shown_value(key), help='a number for each kernel: lambda t: (t.kernel == "matmul").where(2, 1)'
                            if isinstance(key, Mapping) else None)
    asked = process_number(key)
    if asked:
        raise KeyTraceError(f"the key of {what} calls {asked}(), which answers otherwise in each process", here(),
                            expected="a key that is the same in each process",
                            help="DispatchPolicy.hash(key, n) hashes the number that a key gives; number names yourself")
    tasks = TaskNames(), TaskNames()    # both alive, so that ids differ
    first, second = (read(_call(key, task, what)) for task in tasks)
    if first != second:
        raise KeyTraceError(f"the key of {what} gives other numbers each time that it is called", here(),
                            expected="an expression of the task alone", found=f"{first[0]!r}, then {second[0]!r}" if len(first) == 1
                            else f"{first!r}, then {second!r}", help="a key is one expression of the task: no id(), no random number")
    return first


def _call(key: Callable[[TaskNames], object], task: TaskNames, what: str) -> object:
    """Return what the key says of a symbolic task."""
    try:
        return key(task)
    except KeyTraceError:
        raise
    except Exception as problem:  # whatever the user's function raises means that it cannot be traced
        text = problem.message if isinstance(problem, PtoError) else f"{type(problem).__name__}: {problem}"
        raise KeyTraceError(f"the key of {what} cannot be traced", here(), notes=(text,),
                            help="it is called on names, not for each task: use arithmetic on t.<loop variable> and "
                            "t.params[k]") from problem


def _whole_number(what: str, value: object) -> s.Scalar:
    """Return the node of an integer or bool expression.

    Raises: S103 for any other value.
    """
    try:
        node = as_scalar(value)
    except PtoError:
        node = None
    if node is None or not (s.scalar_dtype(node).is_integer or s.scalar_dtype(node).value == "bool"):
        raise KeyTraceError(f"{what} gives no whole number", here(), expected="one integer expression", found=shown_value(value))
    return node


def _key_of(result: object, what: str) -> KeyExpr:
    node = _whole_number(f"the key of {what}", result)
    foreign = [leaf for leaf in s.leaves(node) if not isinstance(leaf, s.AxisName | s.BracketIndex | s.KernelIs | s.SymbolRef)]
    if foreign:
        raise KeyTraceError(f"the key of {what} depends on more than the task", here(), found=print_scalar(foreign[0]),
                            expected="loop variables by name (t.b), bracket indices (t.params[0]), t.kernel == \"name\" and Symbols",
                            help=_reason(foreign[0]))
    return KeyExpr(s.substitute(node, lambda leaf: replace(leaf, id=BY_NAME) if isinstance(leaf, s.SymbolRef) else None))


def _reason(leaf: s.Scalar) -> str:
    match leaf:
        case s.Element():
            return "tasks may write it meanwhile: give the number in brackets, kernel[n], and take t.params, or bind a Symbol"
        case s.Var():
            return f"a schedule stands outside the workload's loops: write t.{leaf.name}"
        case _:
            return "a schedule is the same for all shapes that are bound: bind a Symbol"
