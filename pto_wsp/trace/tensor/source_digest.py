"""Digest what a trace depends on, so that another process knows the trace without tracing: code, captured values, types of arguments.

A digest says that a trace gives the same function; that there is none says nothing. So there is one only where all that counts has a text
of its own: code of plain functions, numbers, strings, small arrays, containers of them. An object that counts by identity, a call of what
may read a file, a clock or a generator of random numbers, and an import inside a body leave the trace without a digest.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from dis import opmap
from enum import Enum
from types import CodeType, FunctionType

import numpy as np

from pto_wsp.trace.tensor.captured import MOST_ELEMENTS, CapturedNames
from pto_wsp.trace.tensor.leaves import leaves_of, parts_of
from pto_wsp.values import dataclass

_IMPURE = frozenset({
    "__import__", "compile", "eval", "exec", "globals", "id", "input", "locals", "open", "vars",                   # builtins
    "fromfile", "fromregex", "genfromtxt", "load", "loadtxt", "memmap", "random", "read", "seed",                # of arrays
    "default_rng", "environ", "getenv", "now", "rand", "randn", "time", "today", "uuid4"})


class _NoText(Exception):
    """A value that has no text of its own."""


def source_digest(captured: CapturedNames, *more: object) -> str | None:
    """Return the digest of a function, its captured values and `more`; None if the identity of one of them matters."""
    try:
        text = "\n".join((_function_text(captured.function, _Around()), *(
            f"{name}={_text(value, _Around(attributes=attributes))}" for name, value, attributes in captured.values()),
            *(_text(one, _Around(classes=True)) for one in more)))
    except _NoText:
        return None
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class _Around:
    """Where a value stands: the functions whose text it is a part of; the attributes that are read of it; whether a class is its name."""

    functions: tuple[object, ...] = ()
    attributes: tuple[str, ...] = ()
    classes: bool = False


def _text(value: object, around: _Around) -> str:
    """Return a text that only equal values have.

    Raises: _NoText.
    """
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if value is None or kind in (int, bool, str, bytes):
        return f"{name}:{value!r}"
    if isinstance(value, float):
        return f"{name}:{float(value).hex()}"
    if isinstance(value, Enum):
        return f"{name}.{value.name}"
    if isinstance(value, np.dtype):
        return f"dtype {value.str} {value.names}"
    if isinstance(value, np.generic | np.ndarray) and value.size <= MOST_ELEMENTS and not value.dtype.hasobject:
        return f"{name} {value.dtype.str} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, type):
        if not around.classes:
            raise _NoText
        return f"class {value.__module__}.{value.__qualname__}"
    if isinstance(value, tuple | list) and kind in (tuple, list):
        return f"{name}({','.join(_text(part, around) for part in value)})"
    if isinstance(value, dict):
        return f"{name}({','.join(f'{_text(key, around)}:{_text(part, around)}' for key, part in value.items())})"
    if parts_of(value) is not None:
        return f"{name}({','.join(f'{path}={_text(leaf, around)}' for path, leaf in leaves_of(value, ''))})"
    if dataclasses.is_dataclass(value) and name.startswith("pto_wsp."):
        return f"{name}({','.join(_text(getattr(value, each.name), around) for each in dataclasses.fields(value))})"
    if callable(value) and not around.attributes:
        return _function_text(value, around)
    raise _NoText


def _function_text(function: object, around: _Around) -> str:
    """Return the text of a plain function, or of one on tensors: its code, defaults, annotations, and what is in its cells.

    Raises: _NoText.
    """
    plain = function
    if not isinstance(function, FunctionType) and type(function).__module__.startswith("pto_wsp."):
        plain = getattr(function, "__wrapped__", None)
    if not isinstance(plain, FunctionType) or hasattr(plain, "__wrapped__"):
        raise _NoText
    if any(plain is one for one in around.functions):
        return f"again {plain.__qualname__}"
    inside = _Around((*around.functions, plain))
    parts = [plain.__defaults__, plain.__kwdefaults__, *map(_cell, plain.__closure__ or ())]
    annotations = dict(_plain(plain.__annotations__))
    return "|".join((str(plain.__module__), *_code_text(plain.__code__), *(_text(one, inside) for one in parts),
                     _text(annotations, _Around((*around.functions, plain), classes=True))))


def _plain(annotations: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield annotations; of `typing`, which have no text that holds everywhere, their repr."""
    for name, value in annotations.items():
        yield name, repr(value) if type(value).__module__ == "typing" else value


def _cell(cell: object) -> object:
    try:
        return cell.cell_contents  # type: ignore[attr-defined]
    except ValueError:      # not bound yet
        raise _NoText from None


def _code_text(code: CodeType) -> Iterator[str]:
    if _IMPURE.intersection(code.co_names) or opmap["IMPORT_NAME"] in code.co_code[::2]:
        raise _NoText
    yield repr((code.co_name, code.co_filename, code.co_firstlineno, code.co_flags, code.co_argcount, code.co_posonlyargcount,
                code.co_kwonlyargcount, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    yield code.co_code.hex()
    yield bytes(code.co_linetable).hex()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_text(constant)
        elif isinstance(constant, frozenset):
            yield repr(sorted(map(repr, constant)))
        else:
            yield repr(constant)
