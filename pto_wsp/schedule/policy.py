"""What every policy is: a frozen pydantic model with positional forms, whose bad values are errors at the user's call."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, get_args

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, PlainValidator, ValidationError

from pto_wsp.errors import PolicyValueError
from pto_wsp.expr import codec
from pto_wsp.source import here
from pto_wsp.types.scalar import Scalar, print_scalar


def _plain_int(value: object) -> object:
    return int(value) if isinstance(value, np.integer) else value


Count = Annotated[int, BeforeValidator(_plain_int), Field(strict=True, ge=1)]
Executors = Annotated[int, BeforeValidator(_plain_int), Field(strict=True, ge=1, le=1 << 16)]


class Policy(BaseModel):
    """Base of the policies. `positional` names the fields that may be given without their name, in order."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, arbitrary_types_allowed=True)
    positional: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: object, **fields: object) -> None:
        names = type(self).positional
        given = dict(zip(names, args, strict=False))
        if len(args) > len(names) or given.keys() & fields.keys():
            raise PolicyValueError(f"{type(self).__name__} takes {', '.join(names) or 'no positional values'}", here(),
                                   found=f"{len(args)} positional values and {', '.join(fields) or 'no names'}")
        try:
            super().__init__(**given, **fields)
        except ValidationError as problem:
            first = problem.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or type(self).__name__
            raise PolicyValueError(f"{type(self).__name__} does not take this value for {where}", here(),
                                   expected=str(first["msg"]), found=_shown(first.get("input"))) from None

    def __str__(self) -> str:
        return repr(self)

    def __repr_args__(self) -> Any:
        for name, value in super().__repr_args__():
            if name == "kind" and len(get_args(type(self).model_fields[name].annotation)) == 1:   # the class says it
                continue
            yield name, value


def _shown(value: object) -> str:
    text = repr(value)
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
        return KeyExpr(codec.from_data(value))  # type: ignore[arg-type]
    raise ValueError("a traced key")


Key = Annotated[KeyExpr, PlainValidator(_read_key), PlainSerializer(lambda key: codec.to_data(key.node))]
