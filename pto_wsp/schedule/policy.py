"""What every policy is: a frozen record with positional forms, whose bad values are errors at the user's call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Self

from pto_wsp.errors import PolicyValueError, PtoError
from pto_wsp.expr import codec
from pto_wsp.records import Before, Codec, Field, Record, first_problem, plain_float, plain_int
from pto_wsp.schedule.support import Directive
from pto_wsp.source import here
from pto_wsp.types.scalar import Scalar
from pto_wsp.types.scalar_text import print_scalar

Count = Annotated[int, Before(plain_int), Field(strict=True, ge=1, le=1 << 62)]
PerMillisecond = Annotated[float, Before(plain_float), Field(strict=True, ge=1e-3, le=1e12)]   # so that its cycles fit 64 bits
Executors = Annotated[int, Before(plain_int), Field(strict=True, ge=1, le=1 << 16)]


class Policy(Record):
    """Base of the policies. `positional` names the fields that may be given without their name, in order, `needs` the field that a
    policy of a kind cannot do without. `entries`: a directive for each kind, with what targets make of it; `said_as`: its name, of which
    {0} is the policy.
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
        """Refuse a policy, or one inside it, that lacks what its kind needs.

        Raises: S102.
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

        Raises: S102 for what is no JSON of such a policy.
        """
        try:
            made = super().model_validate_json(text)
        except ValueError as problem:
            where, expected, found = first_problem(problem)
            said = f"{cls.__name__} does not take this value for {where}" if where else f"this is no {cls.__name__}"
            raise PolicyValueError(said, here(), expected=expected, found=shown_value(found)) from None
        made.refuse_gaps()
        return made

    def __str__(self) -> str:
        return repr(self)

    def shown_fields(self) -> Iterator[tuple[str, object]]:
        """Yield what `repr` shows: not the kind where the class says it."""
        for name, value in super().shown_fields():
            if name != "kind" or not self.kind_is_class:
                yield name, value


def shown_value(value: object) -> str:
    """Return what was found, in at most 60 characters."""
    try:
        text = repr(value)
    except Exception:       # of an object of the user's, or a number of thousands of digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


class KeyExpr:
    """A traced key: an expression over a task's loop variables and bracket indices, compared and printed by its text."""

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
