"""Checking the calls that users write in a kernel: too few, too many or unknown arguments are errors at their line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Signature, signature
from typing import ParamSpec, TypeVar

from pto_wsp.errors import ArityError
from pto_wsp.source import here

P = ParamSpec("P")
R = TypeVar("R")


def bind(name: str, expected: Signature, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of a call by parameter, in the order of the parameters, defaults included.

    Raises: T101 when they do not fit.
    """
    try:
        bound = expected.bind(*args, **kwargs)
    except TypeError as mistake:
        shown = ", ".join([*(_shown(a) for a in args), *(f"{key}={_shown(value)}" for key, value in kwargs.items())])
        raise ArityError(f"`{name}`: {mistake}", here(), expected=f"{name}{_plain(expected)}",
                         found=f"{name}({shown})") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def user_call(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function check its arguments as `bind` does; `name` is what the user calls it."""
    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        expected = signature(function)

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            bind(name, expected, args, kwargs)
            return function(*args, **kwargs)
        return checked
    return decorate


def _plain(expected: Signature) -> str:
    return str(expected.replace(parameters=[p.replace(annotation=p.empty) for p in expected.parameters.values()],
                                return_annotation=Signature.empty))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
