"""Define the base of the policies: a frozen record with positional fields, which reports bad values at the user's call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Self

from pto_wsp.calls import user_calls
from pto_wsp.errors import PolicyValueError, PtoError
from pto_wsp.ir import codec
from pto_wsp.ir.scalar import Scalar, print_scalar
from pto_wsp.records import Before, Codec, Field, Record, first_problem, plain_float, plain_int
from pto_wsp.schedule.support import Directive
from pto_wsp.source import here

Count = Annotated[int, Before(plain_int), Field(strict=True, ge=1, le=1 << 62)]
PerMillisecond = Annotated[float, Before(plain_float), Field(strict=True, ge=1e-3, le=1e12)]   # so that the cycles fit 64 bits
Executors = Annotated[int, Before(plain_int), Field(strict=True, ge=1, le=1 << 16)]


@user_calls(also_of=Record)
class Policy(Record):
    """Define the base of the policies.

    `positional` lists the fields that can be given without a name, in order. `needs` maps a kind to the field that it requires.
    `entries` holds a directive for each kind, with what targets do with it; `said_as` is its name, in which {0} is the policy.
    """

    positional: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[dict[str, str]] = {}
    kind_is_class: ClassVar[bool] = False
    said_as: ClassVar[str] = ""
    entries: ClassVar[tuple[Directive, ...]] = ()

    def __init__(self, *args: object, **fields: object) -> None:
        names = type(self).positional
        given = dict(zip(names, args, strict=False))
        if len(args) > len(names) or given.keys() & fields.keys():
            raise PolicyValueError(f"{type(self).__name__} takes {', '.join(names) or 'no positional values'}", here(),
                                   found=f"{len(args)} positional values and {', '.join(fields) or 'no names'}")
        try:
            super().__init__(**given, **fields)
        except ValueError as problem:
            where, expected, found = first_problem(problem)
            raise PolicyValueError(f"{type(self).__name__} does not take this value for {where or type(self).__name__}", here(),
                                   expected=expected, found=shown_value(found)) from None
        self.refuse_gaps()

    @property
    def directive(self) -> str:
        """The name of what it says: `dispatch.round_robin`."""
        return self.said_as.format(self)

    def refuse_gaps(self) -> None:
        """Check that the policy and the policies in it have the fields that their kinds require.

        Raises: S102 otherwise.
        """
        kind = getattr(self, "kind", "")
        needed = self.needs.get(kind)
        if needed is not None and getattr(self, needed) is None:
            raise PolicyValueError(f"{type(self).__name__} of the kind `{kind}` says no {needed}", here(), expected=f"a value for {needed}",
                                   found="None")
        for part in self.__dict__.values():
            if isinstance(part, Policy):
                part.refuse_gaps()

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        """Return the policy that `model_dump_json` wrote.

        Raises: S102 for text that is not the JSON of such a policy.
        """
        try:
            policy = super().model_validate_json(text)
        except ValueError as problem:
            where, expected, found = first_problem(problem)
            message = f"{cls.__name__} does not take this value for {where}" if where else f"this is no {cls.__name__}"
            raise PolicyValueError(message, here(), expected=expected, found=shown_value(found)) from None
        policy.refuse_gaps()
        return policy

    def __str__(self) -> str:
        return repr(self)

    def shown_fields(self) -> Iterator[tuple[str, object]]:
        """Yield the fields that `repr` prints: without the kind if the class implies it."""
        for name, value in super().shown_fields():
            if name != "kind" or not self.kind_is_class:
                yield name, value


def shown_value(value: object) -> str:
    """Return the repr of a value, in at most 60 characters."""
    try:
        text = repr(value)
    except Exception:       # a user's __repr__ may raise, and so does a number with thousands of digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


class KeyExpr:
    """A traced key: an expression over a task's loop variables and bracket indices, compared by its nodes and printed as text."""

    __slots__ = ("node",)

    def __init__(self, node: Scalar) -> None:
        self.node = node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyExpr) and self.node == other.node

    def __hash__(self) -> int:
        return hash(self.node)

    def __repr__(self) -> str:
        return print_scalar(self.node)


def _read_key(value: object) -> KeyExpr:
    if isinstance(value, KeyExpr):
        return value
    if isinstance(value, dict):
        try:
            return KeyExpr(codec.from_data(value))  # type: ignore[arg-type]
        except PtoError:
            raise ValueError("a traced key") from None
    raise ValueError("a traced key")


Key = Annotated[KeyExpr, Codec(_read_key, lambda key: codec.to_data(key.node))]
