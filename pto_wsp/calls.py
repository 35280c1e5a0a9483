"""Check the calls of public functions: arguments that do not fit are a coded error at the user's line.

`user_call` decorates a function, `user_calls` the public methods of a class. A call whose arguments fit costs nothing more: only
when the function raises one of Python's own errors are the arguments compared with the signature.

>>> @user_call("load")
... def load(folder: str) -> str: return folder.strip()
>>> load()
Traceback (most recent call last):
pto_wsp.errors.kernel.ArityError: error[T101]: `load`: missing a required argument: 'folder'
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import EnumMeta
from functools import wraps
from inspect import BoundArguments, Parameter, Signature, signature, unwrap
from types import FrameType, FunctionType, TracebackType, UnionType
from typing import Annotated, Any, Literal, NoReturn, Protocol, Self, TypeVar, Union, cast, get_args, get_origin

import numpy as np

from pto_wsp.errors import ArgumentKindError, ArityError, PtoError
from pto_wsp.source import here, is_internal
from pto_wsp.wording import suggestion

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


class Decorator(Protocol):
    """What returns a function of the same type."""

    def __call__(self, function: F, /) -> F: ...


_LONGEST_SHOWN = 40
_OF_CLASS = "{class}"      # in the name of a method, for that of the object's class
# Methods of Python's own protocols whose arguments a user writes.
_CALLED = frozenset({"__init__", "__call__"})


# -- decorators --------------------------------------------------------------------------------------------------------
def user_call(called: str = "", /, **other_names: str) -> Decorator:
    """Decorate a function whose arguments a user writes; `called` is its name in user code, if it has another one there.

    `other_names`: further keywords, each with the parameter that it stands for: `outer_size="outer"`.
    Raises (the decorated function): T101 for arguments that the signature does not have or lacks; T205 for a value of another kind than
    the parameter's annotation, if Python refuses the value.
    """
    def decorate(function: F) -> F:
        return cast(F, _checked(function, called or function.__name__, other_names))
    return decorate


def user_calls(name: str = "", *, leave_out: Collection[str] = (), also_of: type | None = None) -> Callable[[C], C]:
    """Decorate a class: its constructor, its `__call__` and its public methods are checked as by `user_call`.

    `name`: the name of an instance in user code, where there is only one, such as `P`; else that of the object's class.
    `also_of`: a base whose public methods are checked, too.
    """
    def decorate(cls: C) -> C:
        shown = name or _OF_CLASS
        for attribute, value in {**(vars(also_of) if also_of is not None else {}), **vars(cls)}.items():
            if attribute in leave_out or (attribute.startswith("_") and attribute not in _CALLED):
                continue
            called = shown if attribute == "__init__" or (name and attribute == "__call__") else f"{shown}.{attribute}"
            match value:
                case staticmethod():
                    setattr(cls, attribute, staticmethod(_checked(value.__func__, called.replace(_OF_CLASS, cls.__name__), {})))
                case classmethod():
                    setattr(cls, attribute, classmethod(_checked(value.__func__, called, {})))
                case FunctionType() if not hasattr(value, "__user_call__") and not getattr(value, "__isabstractmethod__", False):
                    setattr(cls, attribute, _checked(value, called, {}))
                case _:
                    pass
        return cls
    return decorate


def _checked(function: Callable[..., Any], name: str, other_names: Mapping[str, str]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if other_names and not kwargs.keys().isdisjoint(other_names):
            kwargs = _renamed(name, kwargs, other_names)
        try:
            return function(*args, **kwargs)
        except PtoError:
            raise
        except Exception as problem:
            error = _refusal(name, function, args, kwargs, problem, sys._getframe(1))
            if error is None:
                raise
        raise error
    call.__user_call__ = name  # type: ignore[attr-defined]
    return call


def _renamed(name: str, kwargs: Mapping[str, Any], other_names: Mapping[str, str]) -> dict[str, Any]:
    """Return keyword arguments under the names of the parameters.

    Raises: T101 for a parameter that is given under both names.
    """
    renamed = dict(kwargs)
    for other, parameter in other_names.items():
        if other in renamed:
            if parameter in renamed:
                raise ArityError(f"`{name}`: {other}= and {parameter}= are the same", here(), help=f"leave {other}= out")
            renamed[parameter] = renamed.pop(other)
    return renamed


# -- classes that are names --------------------------------------------------------------------------------------------
class NoValues:
    """Base of classes that only have names, and types in brackets: a call of the class is refused."""

    def __new__(cls, *args: object, **names: object) -> Self:
        """Refuse the call.

        Raises: T101.
        """
        raise _no_values(cls)


def _no_values(cls: type) -> ArityError:
    made = [f"{cls.__name__}.{name}(...)" for name in vars(cls) if not name.startswith("_")]
    return ArityError(f"`{cls.__name__}(...)` makes no value", here(), expected=", ".join(made) or f"{cls.__name__}[...]")


class NamedMembers(EnumMeta):
    """The type of enums whose call by a user is checked: `DType("f32")` finds a member by its value."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return the member of a value.

        Raises: T101 for other than one value, T205 for a value that no member has.
        """
        try:
            return super().__call__(*args, **kwargs)
        except (TypeError, ValueError):
            if is_internal(sys._getframe(1).f_code):
                raise
        members = ", ".join(f"{cls.__name__}.{name}" for name in cls.__members__)
        if len(args) == 1 and not kwargs:
            raise _unfit(f"{cls.__name__} has no member of this value", f"one of {members}", args[0])
        raise ArityError(f"`{cls.__name__}` takes the value of a member", here(), expected=f"one of {members}")


# -- refusals ----------------------------------------------------------------------------------------------------------
def bind(name: str, expected: Signature, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of a call by parameter, in parameter order, with defaults.

    Raises: T101 if they do not match the signature.
    """
    bound = _bound(name, expected, args, kwargs)
    if isinstance(bound, ArityError):
        raise bound
    bound.apply_defaults()
    return dict(bound.arguments)


def _refusal(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], problem: Exception,
             caller: FrameType) -> PtoError | None:
    """Return the error of a call that raised one of Python's own; None if the arguments are not the reason.

    A call by this package is no user's, and what a function of the user's raises is the user's.
    """
    if is_internal(caller.f_code) or not _raised_inside(problem.__traceback__):
        return None
    expected = signature(function)
    if next(iter(expected.parameters), "") in ("self", "cls"):      # a user does not write the object itself
        owner = args[0] if isinstance(args[0], type) else type(args[0])
        name = name.replace(_OF_CLASS, owner.__name__)
        expected, args = expected.replace(parameters=list(expected.parameters.values())[1:]), args[1:]
    found = _bound(name, expected, args, kwargs)
    if isinstance(found, ArityError):
        return found
    for parameter, value in _values(found):
        if not _is_of(value, _annotation(parameter, function)):
            return _unfit(f"`{name}` does not take this value for `{parameter.name}`", str(parameter.annotation), value)
    return None


def _unfit(message: str, expected: str, value: object) -> ArgumentKindError:
    return ArgumentKindError(message, here(), expected=expected, found=_shown(value))


def _raised_inside(trace: TracebackType | None) -> bool:
    """Tell whether an error was raised in this package: not in a function of the user's that the package called."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and is_internal(trace.tb_frame.f_code)


def _bound(name: str, expected: Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> BoundArguments | ArityError:
    try:
        return expected.bind(*args, **kwargs)
    except TypeError as mistake:
        shown = ", ".join([*map(_shown, args), *(f"{key}={_shown(value)}" for key, value in kwargs.items())])
        unknown = next((key for key in kwargs if key not in expected.parameters), None)
        by_name = any(one.kind in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD) for one in expected.parameters.values())
        return ArityError(f"`{name}`: {mistake}", here(), expected=f"{name}{_plain(expected)}", found=f"{name}({shown})",
                          help="give the others by name, name=value" if by_name and str(mistake).startswith("too many") else
                          suggestion(unknown, (key for key in expected.parameters if key not in kwargs)))


def _plain(expected: Signature) -> str:
    """Return the text of a signature without types."""
    return str(expected.replace(parameters=[p.replace(annotation=p.empty) for p in expected.parameters.values()],
                                return_annotation=Signature.empty))


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:       # a user's __repr__ may raise
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN - 3] + "..."


def _values(bound: BoundArguments) -> Iterator[tuple[Parameter, object]]:
    """Yield the pairs of parameter and argument; every value of `*args` and `**kwargs` is a pair of its own."""
    for name, value in bound.arguments.items():
        parameter = bound.signature.parameters[name]
        if parameter.kind is Parameter.VAR_POSITIONAL:
            yield from ((parameter, each) for each in value)
        elif parameter.kind is Parameter.VAR_KEYWORD:
            yield from ((parameter, each) for each in value.values())
        else:
            yield parameter, value


# -- annotations -------------------------------------------------------------------------------------------------------
def _annotation(parameter: Parameter, function: Callable[..., Any]) -> Any:
    """Return the type that a parameter is annotated with; `object` where it is not known at run time."""
    if parameter.annotation is Parameter.empty:
        return object
    return _evaluated(parameter.annotation, getattr(unwrap(function), "__globals__", {}))


def _evaluated(annotation: Any, scope: Mapping[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, dict(scope))
    except Exception:      # a name that only type checkers import
        return object


_PLAIN: Mapping[Any, tuple[type, ...]] = {int: (int, np.integer), float: (int, float, np.integer, np.floating), str: (str,)}
_TEXT = (str, bytes)


def _is_of(value: object, kind: Any) -> bool:
    """Tell whether a value may be of a type; True where the type is not known."""
    origin, args = get_origin(kind), get_args(kind)
    if kind in (Any, object, NoReturn) or isinstance(kind, TypeVar | str):
        return True
    if kind is None:
        return value is None
    if origin is Annotated:
        return _is_of(value, args[0])
    if origin in (Union, UnionType):
        return any(_is_of(value, arg) for arg in args)
    if origin is Literal:
        return value in args
    kind = origin or kind
    if kind in _PLAIN:
        return isinstance(value, _PLAIN[kind]) and not isinstance(value, bool)
    if kind in (Sequence, Iterable, Collection):
        return isinstance(value, kind) and not isinstance(value, _TEXT)
    return isinstance(value, kind) if isinstance(kind, type) else callable(value) if kind is Callable else True
