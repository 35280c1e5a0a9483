"""Define `Tunable`: the values that auto_schedule may choose from, of a function's parameter or of an entry of a plan."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from pto_wsp.calls import user_calls
from pto_wsp.errors import TunableError
from pto_wsp.source import here


@user_calls()
class Tunable:
    """The values that a parameter, or an entry of a plan, may have, the default first: `def scores(rows=Tunable(16, 32, 64))`.

    A call without the parameter uses the first value. The values can be anything that the function accepts, such as numbers or dtypes.

    Raises: S110 for no values, or for a repeated value.

    >>> Tunable(16, 32).default
    16
    """

    __slots__ = ("values",)

    def __init__(self, *values: object) -> None:
        repeated = next((value for index, value in enumerate(values) if value in values[:index]), None)
        if not values or repeated is not None:
            raise TunableError("a Tunable takes the values to choose from", here(), expected="one or more, each another one",
                               found="none" if not values else f"{repeated!r} twice",
                               help="Tunable(16, 32, 64)" + (": values, not a list of them" if not values else ""))
        if len(values) == 1 and isinstance(values[0], list | tuple | range):
            raise TunableError("a Tunable takes the values themselves", here(), found=repr(values[0]),
                               help=f"Tunable({', '.join(map(repr, values[0]))})" if values[0] else "Tunable(16, 32, 64)")
        self.values = values

    @property
    def default(self) -> object:
        """The value in a call without the parameter."""
        return self.values[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tunable) and repr(self) == repr(other) and self.values == other.values

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"Tunable({', '.join(map(repr, self.values))})"


def usual_value(value: object) -> object:
    """Return the default of a Tunable, and any other value unchanged."""
    return value.default if isinstance(value, Tunable) else value


def tunables_of(function: Callable[..., object]) -> Mapping[str, Tunable]:
    """Return the parameters of a function whose default is a Tunable."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):      # the callable has no signature
        return {}
    return {parameter.name: parameter.default for parameter in parameters if isinstance(parameter.default, Tunable)}
