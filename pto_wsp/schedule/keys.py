"""Trace key functions, and find those whose results differ between processes.

A key function runs once on a symbolic task, and the policy stores the expression that it returns. Python never calls it during a
run. A function is refused when it calls `hash()` or `id()`, because each process returns other numbers for text and objects:

>>> process_number(lambda t: hash("b") % 4)
'hash'
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from types import CodeType, FunctionType, MethodType
from typing import NoReturn, TypeAlias, TypeVar

import numpy as np

from pto_wsp.calls import user_calls
from pto_wsp.errors import KeyTraceError, PtoError
from pto_wsp.ir import scalar as s
from pto_wsp.ir.scalar import print_scalar
from pto_wsp.ir.symbolic import Symbolic, as_scalar
from pto_wsp.schedule.policy import OUTSIDE_TABLE, KeyExpr, shown_value
from pto_wsp.source import here, is_internal

# -- numbers of a process ----------------------------------------------------------------------------------------------
_CALLS = 8       # of a key's function: a random number below 4 is the same twice in one of 4 cases, eight times in one of 16384
_ASKED = {builtins.hash: "hash", builtins.id: "id"}


def process_number(function: object) -> str:
    """Return "hash" or "id" if a function, or a function of its module that it names, names that builtin or `__hash__`; else ""."""
    todo, seen = [function], set[int]()
    while todo:
        each = todo.pop()
        if isinstance(each, functools.partial):
            each = each.func
        if isinstance(each, MethodType):
            each = each.__func__
        if not isinstance(each, FunctionType) or id(each) in seen:
            continue
        seen.add(id(each))
        if "__hash__" in (*each.__code__.co_names, *each.__code__.co_consts):      # x.__hash__(), getattr(x, "__hash__")()
            return "hash"
        for value in _named(each):
            for builtin, name in _ASKED.items():
                if value is builtin:
                    return name
            if isinstance(value, FunctionType) and value.__globals__ is each.__globals__:
                todo.append(value)
    return ""


def _named(function: FunctionType) -> Iterator[object]:
    """Yield the values of the names in a function's code: globals, builtins, and variables of enclosing functions."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    for each in _instructions(function.__code__):
        name = each.argval
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME") and isinstance(name, str):
            yield function.__globals__.get(name, getattr(builtins, name, None))
        elif each.opname == "LOAD_DEREF" and name in cells:
            with suppress(ValueError):      # the variable is not assigned yet
                yield cells[name].cell_contents


def _instructions(code: CodeType) -> Iterator[dis.Instruction]:
    """Yield the instructions of a function and of the functions nested in it."""
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)


# -- the symbolic task -------------------------------------------------------------------------------------------------
_MOST_BRACKETS = 1 << 16
BY_NAME = -1    # the id of a Symbol in a key: compilation finds it by name, as it does loop variables


_running: ContextVar[bool] = ContextVar("pto_wsp_key_running", default=False)    # a key is being called


class _NoValue:
    """A symbolic object that a key may only take parts of. Python operations on it would return constants that are equal for all tasks."""

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
        if _running.get() and not is_internal(sys._getframe(1).f_code):     # errors and debuggers show the object
            self._refuse("repr()")
        return f"<{self._spoken}, as a key sees it>"


class BracketIndices(_NoValue):
    """Represent `t.params`, the bracket indices of the task's call."""

    __slots__ = ()
    _spoken = "t.params"

    def __getitem__(self, position: int) -> Symbolic:
        if not isinstance(position, int | np.integer) or isinstance(position, bool) or not 0 <= position < _MOST_BRACKETS:
            raise KeyTraceError("t.params takes the place of a bracket index", here(), found=repr(position),
                                expected=f"a whole number in 0 .. {_MOST_BRACKETS - 1}")
        return Symbolic(s.BracketIndex(int(position)))


class LoopName(Symbolic):
    """Represent a loop variable by its name.

    `default` is its value in tasks outside every loop of that name. For a loop over a sparse row, `position` is the column's position
    in the indices.
    """

    __slots__ = ("_default", "_name")

    def __init__(self, name: str, default: s.Scalar | None = None) -> None:
        super().__init__(s.AxisName(name, default))
        self._name, self._default = name, default

    @property
    def position(self) -> Symbolic:
        """The position of the column in the indices; tasks whose loop does not iterate over a sparse row have only the default."""
        return Symbolic(s.AxisName(f"{self._name}.position", self._default))


class KernelNamed(ABC):
    """An object that a key can compare with the task's kernel."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The kernel's name."""


class TaskKernel(LoopName):
    """Represent `t.kernel`, which is compared with a kernel or a kernel's name. Any other use is the loop variable called `kernel`."""

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


class TaskTags(LoopName):
    """Represent `t.tags`, the loop variables around the task by name, as a mapping. Any other use is the loop variable called `tags`."""

    __slots__ = ()
    __hash__ = LoopName.__hash__

    def __init__(self) -> None:
        super().__init__("tags")

    def __getitem__(self, name: str) -> Symbolic:  # type: ignore[override]
        return self.get(name)

    def get(self, name: str, default: object = None) -> Symbolic:
        """Return the loop variable called `name`; `default` is its value in tasks outside every loop of that name."""
        return loop_name("t.tags", name, default)


def loop_name(where: str, name: object, default: object = None) -> LoopName:
    """Return a loop variable by name. `default`: the value for tasks outside every loop of that name; None: such tasks are refused.

    Raises: S103 for a value that is not a name, or a default that is not a whole number.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise KeyTraceError(f"{where} takes the name of a loop variable", here(), found=shown_value(name))
    return LoopName(name, None if default is None else _whole_number(f"the default of {where}", default))


@user_calls("t")
class TaskNames(_NoValue):
    """The symbolic task that a key receives.

    `t.b`, `t.get("b")` and `t.tags["b"]` are loop variables by name, `t.params` the bracket indices; `t.kernel == "matmul"` tests for a
    kernel.
    `t.get("b", 0)` is 0 in tasks outside every loop of that name.
    """

    __slots__ = ("_given",)

    def __init__(self) -> None:
        self._given: list[object] = []      # keeps the parts alive, so that two traces never have equal ids

    @property
    def params(self) -> BracketIndices:
        """The bracket indices of the task's call."""
        return self._kept(BracketIndices())

    @property
    def kernel(self) -> TaskKernel:
        """The kernel, to compare with a name (`t.kernel == "matmul"`) or with a kernel."""
        return self._kept(TaskKernel())

    @property
    def tags(self) -> TaskTags:
        """The loop variables around the task by name: `t.tags["b"]`, `t.tags.get("b", 0)`."""
        return self._kept(TaskTags())

    def get(self, name: str, default: object = None) -> Symbolic:
        """Return the loop variable called `name`.

        `default` is its value in tasks outside every loop of that name. Without a default, compiling refuses such tasks.

        Raises: S103 for a value that is not a name, or a default that is not a whole number.
        """
        return self._kept(loop_name("t.get", name, default))

    def __getattr__(self, name: str) -> Symbolic:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._kept(LoopName(name))

    def _kept(self, part: _Part) -> _Part:
        self._given.append(part)
        return part


# -- tracing -----------------------------------------------------------------------------------------------------------
_Part = TypeVar("_Part", BracketIndices, LoopName, TaskKernel, TaskTags)
KeyTable: TypeAlias = "Mapping[str | KernelNamed | None, object]"
KeyLike: TypeAlias = "Callable[[TaskNames], object] | str | Symbolic | KeyExpr | KeyTable"


def trace_key(key: KeyLike, what: str) -> KeyExpr:
    """Return the expression that `key` computes.

    `key`: a function of the task, a loop variable's name, an expression, or a table: a number for each kernel, and under None for others.

    Raises: S103 if it cannot be traced to one integer.
    """
    if isinstance(key, KeyExpr):
        return key
    (expression,) = _traced(key, what, lambda result: (_key_of(result, what),))
    return expression


def trace_keys(key: KeyLike, what: str, count: int) -> tuple[KeyExpr, ...]:
    """Return the `count` expressions that `key` computes.

    Raises: S103 if it cannot be traced to `count` integers.
    """
    def keys_of(results: object) -> tuple[KeyExpr, ...]:
        if not isinstance(results, tuple) or len(results) != count:
            raise KeyTraceError(f"the key of {what} gives no {count} whole numbers", here(), expected=f"a tuple of {count}",
                                found=shown_value(results))
        return tuple(_key_of(result, what) for result in results)

    return _traced(key, what, keys_of)


def _traced(key: KeyLike, what: str, read: Callable[[object], tuple[KeyExpr, ...]]) -> tuple[KeyExpr, ...]:
    """Return `read` of the key's result; a function is called several times, and all results must agree.

    Raises: S103 for a function whose result does not depend on the task alone: an address, a hash of text, a random number, a count of
    its calls.
    """
    if isinstance(key, str):
        return read(TaskNames().get(key))
    if isinstance(key, Symbolic):
        return read(key)
    if isinstance(key, Mapping):
        return read(_looked_up(key, what))
    if not callable(key):
        raise KeyTraceError(f"{what} takes a key", here(), expected="lambda t: ..., a loop variable's name, an expression, or a table "
                            "with a number for each kernel", found=shown_value(key))
    asked = process_number(key)
    if asked:
        raise KeyTraceError(f"the key of {what} calls {asked}(), which answers otherwise in each process", here(),
                            expected="a key that is the same in each process",
                            help="DispatchPolicy.hash(key, n) hashes the number that a key gives; number names yourself")
    tasks = [TaskNames() for _ in range(_CALLS)]    # all stay alive, so that their ids differ
    first, *others = (read(_call(key, task, what)) for task in tasks)
    second = next((other for other in others if other != first), first)
    if first != second:
        raise KeyTraceError(f"the key of {what} gives other numbers each time that it is called", here(),
                            expected="an expression of the task alone", found=f"{first[0]!r}, then {second[0]!r}" if len(first) == 1
                            else f"{first!r}, then {second!r}", help="a key is one expression of the task: no id(), no random number")
    return first


def _looked_up(table: KeyTable, what: str) -> Symbolic:
    """Return the expression of a table: the number of the task's kernel.

    Raises: S103 for a table without entries, and for an entry that is not of a kernel or gives no whole number.
    """
    numbers: dict[str, s.Scalar] = {}
    other: s.Scalar = s.AxisName(OUTSIDE_TABLE)
    for kernel, value in table.items():
        if kernel is not None and not isinstance(kernel, str | KernelNamed):
            raise KeyTraceError(f"the table of {what} has an entry that is no kernel's", here(), found=shown_value(kernel),
                                expected='kernels or their names, and None for all others: {"matmul": 1, None: 0}')
        node = _whole_number(f"the table of {what}", value)
        if kernel is None:
            other = node
        else:
            numbers[kernel if isinstance(kernel, str) else kernel.name] = node
    if not table:
        raise KeyTraceError(f"the table of {what} is empty", here(), expected="a number for each kernel")
    for name, node in reversed(numbers.items()):
        other = s.select(s.KernelIs(name), node, other)
    return Symbolic(other)


def _call(key: Callable[[TaskNames], object], task: TaskNames, what: str) -> object:
    """Return the result of the key for a symbolic task."""
    token = _running.set(True)
    try:
        return key(task)
    except KeyTraceError:
        raise
    except Exception as problem:  # any exception of the user's function means that it cannot be traced
        text = problem.message if isinstance(problem, PtoError) else f"{type(problem).__name__}: {problem}"
        raise KeyTraceError(f"the key of {what} cannot be traced", here(), notes=(text,),
                            help="it is called on names, not for each task: use arithmetic on t.<loop variable> and "
                            "t.params[k]") from problem
    finally:
        _running.reset(token)


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
