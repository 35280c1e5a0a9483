"""Find a function that asks Python for numbers which each process answers otherwise: `hash()` of text, `id()` of anything.

>>> process_number(lambda t: hash("b") % 4)
'hash'
"""

from __future__ import annotations

import builtins
import dis
import functools
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FunctionType, MethodType

_ASKED = {builtins.hash: "hash", builtins.id: "id"}


def process_number(function: object) -> str:
    """Return "hash" or "id" where a function, or one of its own module that it names, names that builtin; "" where none does."""
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
        for value in _named(each):
            for builtin, name in _ASKED.items():
                if value is builtin:
                    return name
            if isinstance(value, FunctionType) and value.__globals__ is each.__globals__:
                todo.append(value)
    return ""


def _named(function: FunctionType) -> Iterator[object]:
    """Yield what the names of a function's code stand for: globals, builtins, and variables of the functions around it."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    for each in _instructions(function.__code__):
        name = each.argval
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME") and isinstance(name, str):
            yield function.__globals__.get(name, getattr(builtins, name, None))
        elif each.opname == "LOAD_DEREF" and name in cells:
            with suppress(ValueError):      # a variable that has no value yet
                yield cells[name].cell_contents


def _instructions(code: CodeType) -> Iterator[dis.Instruction]:
    """Yield the instructions of a function and of those inside it."""
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)
