"""Trace a key function on a symbolic task: the policy stores the expression, Python is never called during a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from pto_wsp.errors import KeyTraceError, PtoError
from pto_wsp.schedule.policy import KeyExpr
from pto_wsp.source import here
from pto_wsp.types import scalar as s
from pto_wsp.types.scalar_text import print_scalar
from pto_wsp.types.symbolic import Symbolic, as_scalar

_MOST_BRACKETS = 1 << 16
BY_NAME = -1    # the id of a Symbol in a key: like loop variables, which one it is comes out at compile


class BracketIndices:
    """`t.params`: the bracket indices of the task's call."""

    __slots__ = ()

    def __getitem__(self, position: int) -> Symbolic:
        if not isinstance(position, int | np.integer) or isinstance(position, bool) or not 0 <= position < _MOST_BRACKETS:
            raise KeyTraceError("t.params takes the place of a bracket index", here(), found=repr(position),
                                expected=f"a whole number in 0 .. {_MOST_BRACKETS - 1}")
        return Symbolic(s.BracketIndex(int(position)))


class LoopName(Symbolic):
    """A loop variable by its name. Of one that walks a sparse row `position` is where the column stands in the indices."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        super().__init__(s.AxisName(name))
        self._name = name

    @property
    def position(self) -> Symbolic:
        """Where the column stands in the indices; a task whose loop walks no sparse row has none."""
        return Symbolic(s.AxisName(f"{self._name}.position"))


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


class TaskNames:
    """The task that a key sees: `t.b` and `t.get("b")` are loop variables by name, `t.params` its bracket indices, `t.kernel == "matmul"`
    asks for its kernel.
    """

    __slots__ = ()

    @property
    def params(self) -> BracketIndices:
        """The bracket indices."""
        return BracketIndices()

    @property
    def kernel(self) -> TaskKernel:
        """The kernel: `t.kernel == "matmul"`, or the kernel itself in place of its name."""
        return TaskKernel()

    def get(self, name: str) -> Symbolic:
        """Return the loop variable of that name."""
        if not isinstance(name, str) or not name.isidentifier():
            raise KeyTraceError("t.get takes the name of a loop variable", here(), found=repr(name))
        return LoopName(name)

    def __getattr__(self, name: str) -> Symbolic:
        if name.startswith("__"):
            raise AttributeError(name)
        return LoopName(name)


KeyLike: TypeAlias = "Callable[[TaskNames], object] | str | Symbolic | KeyExpr"


def trace_key(key: KeyLike, what: str) -> KeyExpr:
    """Return the expression that `key` computes: a function of the task, a loop variable's name, or an expression.

    Raises: S103 when it cannot be traced to one integer.
    """
    return key if isinstance(key, KeyExpr) else _key_of(_call(key, what), what)


def trace_keys(key: KeyLike, what: str, count: int) -> tuple[KeyExpr, ...]:
    """Return the expressions that `key` computes, `count` of them.

    Raises: S103 when it cannot be traced to so many integers.
    """
    results = _call(key, what)
    if not isinstance(results, tuple) or len(results) != count:
        raise KeyTraceError(f"the key of {what} gives no {count} whole numbers", here(), expected=f"a tuple of {count}",
                            found=repr(results))
    return tuple(_key_of(result, what) for result in results)


def _call(key: KeyLike, what: str) -> object:
    """Return what the key says of a symbolic task."""
    if isinstance(key, str):
        return TaskNames().get(key)
    if isinstance(key, Symbolic):
        return key
    if not callable(key):
        raise KeyTraceError(f"{what} takes a key", here(), expected="lambda t: ..., a loop variable's name, or an expression",
                            found=repr(key), help='a number for each kernel: lambda t: (t.kernel == "matmul").where(2, 1)'
                            if isinstance(key, Mapping) else None)
    try:
        return key(TaskNames())
    except Exception as problem:  # whatever the user's function raises means that it cannot be traced
        text = problem.message if isinstance(problem, PtoError) else f"{type(problem).__name__}: {problem}"
        raise KeyTraceError(f"the key of {what} cannot be traced", here(), notes=(text,),
                            help="it runs once, on names: use arithmetic on t.<loop variable> and t.params[k]") from problem


def _key_of(result: object, what: str) -> KeyExpr:
    try:
        node = as_scalar(result)
    except PtoError:
        node = None
    if node is None or not (s.scalar_dtype(node).is_integer or s.scalar_dtype(node).value == "bool"):
        raise KeyTraceError(f"the key of {what} gives no whole number", here(), expected="one integer expression", found=repr(result))
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
