"""`Tunable`: a parameter of a workload function whose value auto_schedule chooses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from pto_wsp.errors import TunableError
from pto_wsp.source import here


class Tunable:
    """The values that a parameter may have, the usual one first: `def scores(rows=Tunable(16, 32, 64))`.

    A call that says nothing of the parameter gets the first value. Any values will do that the function understands: numbers, dtypes.
    Raises: S110 for none, or for the same one twice.

    >>> Tunable(16, 32).default
    16
    """

    __slots__ = ("values",)

    def __init__(self, *values: object) -> None:
        repeated = next((value for at, value in enumerate(values) if value in values[:at]), None)
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
        """The value that a call gets which says nothing."""
        return self.values[0]

    def __repr__(self) -> str:
        return f"Tunable({', '.join(map(repr, self.values))})"


def usual_value(value: object) -> object:
    """Return the usual value of a Tunable, and anything else as it is."""
    return value.default if isinstance(value, Tunable) else value


def tunables_of(function: Callable[..., object]) -> Mapping[str, Tunable]:
    """Return the parameters of a function whose default is a Tunable."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):      # of a callable without a signature
        return {}
    return {parameter.name: parameter.default for parameter in parameters if isinstance(parameter.default, Tunable)}
