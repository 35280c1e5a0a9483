"""`Record`: frozen data with checked fields that goes through JSON, for policies, architectures, options and manifests.

A record is declared like a pydantic model, and pydantic judges every value that is not plainly right: a record with such a value has
a pydantic model made of its fields, which converts the value or refuses it with its own ValidationError. Values that are plainly
right, which is nearly all, are taken as they are, so that a process that sees only those never loads pydantic.

Saves: 125 of 850 ms of a first result from the cache (processor time, pydantic 2 with a model a record, Python 3.11).
Ends: when pydantic is imported, and makes a model for each record, in less than 20 ms.

>>> class Point(Record):
...     x: Annotated[int, Field(ge=0)]
...     y: int = 0
>>> Point(x=3)
Point(x=3, y=0)
>>> Point.model_validate_json('{"x": 1, "y": 2}').model_dump()
{'x': 1, 'y': 2}
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from inspect import get_annotations
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, Union, dataclass_transform, get_args, get_origin

import numpy as np

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

_MISSING: Any = object()
_SCALARS = (int, float, str, bool, NoneType)


class FieldSpec:
    """The declaration of a field: its default, the bounds of its values, and its description."""

    __slots__ = ("default", "default_factory", "description", "discriminator", "ge", "gt", "le", "strict")

    def __init__(self, *, default: Any = _MISSING, default_factory: Callable[[], Any] | None = None, description: str | None = None,
                 discriminator: str | None = None, strict: bool | None = None, ge: float | None = None, gt: float | None = None,
                 le: float | None = None) -> None:
        self.default, self.default_factory, self.description = default, default_factory, description
        self.discriminator, self.strict = discriminator, strict
        self.ge, self.gt, self.le = ge, gt, le

    def value(self) -> Any:
        """Return the default, or `_MISSING`."""
        return self.default if self.default_factory is None else self.default_factory()

    def allows(self, value: Any) -> bool:
        """Tell whether a number keeps to the bounds."""
        return ((self.ge is None or value >= self.ge) and (self.gt is None or value > self.gt)
                and (self.le is None or value <= self.le))


def Field(*, default: Any = _MISSING, default_factory: Callable[[], Any] | None = None, description: str | None = None,
          discriminator: str | None = None, strict: bool | None = None, ge: float | None = None, gt: float | None = None,
          le: float | None = None) -> Any:
    """Declare a field, as pydantic's `Field` does: as a default, or in `Annotated[...]` for the bounds of a type."""
    return FieldSpec(default=default, default_factory=default_factory, description=description, discriminator=discriminator,
                     strict=strict, ge=ge, gt=gt, le=le)


class Before:
    """In `Annotated`: what a value goes through before it is judged."""

    __slots__ = ("convert",)

    def __init__(self, convert: Callable[[Any], Any]) -> None:
        self.convert = convert


class After:
    """In `Annotated`: what a value of the type goes through after; ValueError refuses it."""

    __slots__ = ("check",)

    def __init__(self, check: Callable[[Any], Any]) -> None:
        self.check = check


class Codec:
    """In `Annotated`: how a value of a type of ours is read from JSON's data and written to it."""

    __slots__ = ("read", "write")

    def __init__(self, read: Callable[[Any], Any], write: Callable[[Any], Any]) -> None:
        self.read = read
        self.write = write


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
class Record:
    """Base of the records. The methods are those of pydantic's models, as far as they are needed."""

    model_fields: ClassVar[Mapping[str, FieldSpec]] = {}

    def __init_subclass__(cls) -> None:
        fields = dict(cls.model_fields)
        for name, annotation in get_annotations(cls).items():
            if not str(annotation).startswith("ClassVar"):
                default = cls.__dict__.get(name, _MISSING)
                fields[name] = default if isinstance(default, FieldSpec) else FieldSpec(default=default)
        cls.model_fields = fields

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(plain_values(type(self), given) or _validate(type(self), given))

    @classmethod
    def model_validate(cls, data: Mapping[str, object]) -> Self:
        """Return the record of these fields; nested ones may be mappings.

        Raises: pydantic.ValidationError.
        """
        return cls(**data)

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        """Return the record that `model_dump_json` wrote.

        Raises: pydantic.ValidationError.
        """
        try:
            data = json.loads(text)
            made: Self = _from_json(cls, data)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):   # not ours: pydantic says why
            made = _from_pydantic(pydantic_model(cls).model_validate_json(text))
        return made

    def model_dump(self, *, exclude: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Return the fields as what JSON knows: numbers, strings, lists, dictionaries."""
        hints = _hints(type(self))
        return {name: _to_json(hints[name], getattr(self, name)) for name in self.model_fields if name not in exclude}

    def model_dump_json(self) -> str:
        """Return the record as JSON."""
        return json.dumps(self.model_dump(), separators=(",", ":"), ensure_ascii=False)

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """Return the record with some fields replaced."""
        return type(self)(**{**self.__dict__, **update})

    def shown_fields(self) -> Iterator[tuple[str, object]]:
        """Yield what `repr` shows."""
        yield from self.__dict__.items()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.shown_fields())})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __setattr__(self, name: str, value: object) -> None:
        setattr(_pydantic_value(self), name, value)   # pydantic refuses: the model is frozen

    def __delattr__(self, name: str) -> None:
        delattr(_pydantic_value(self), name)


def first_problem(refused: ValueError) -> tuple[str, str, object]:
    """Return what pydantic says first of a refused value: which field, what it should be, what was found."""
    problem: ValidationError = refused   # type: ignore[assignment]
    first = problem.errors()[0]
    return ".".join(str(part) for part in first["loc"]), str(first["msg"]), first.get("input")


def plain_int(value: object) -> object:
    """Return a whole number of NumPy's as one of Python's, anything else as it is: for `Before`."""
    return int(value) if isinstance(value, np.integer) else value


def plain_float(value: object) -> object:
    """Return NumPy's numbers as Python's, what is no number so that it is refused: pydantic takes whatever `float` does."""
    match value:
        case np.integer() | np.floating():
            return float(value)
        case np.bool_():
            return bool(value)
        case np.ndarray():
            return [value.tolist()]
        case _:
            return value


# ---- what is plainly right ----

_HINTS: dict[type[Record], dict[str, Any]] = {}
_ACCEPTORS: dict[type[Record], dict[str, Callable[[Any], bool]]] = {}


def _hints(cls: type[Record]) -> dict[str, Any]:
    """Return the types of the fields, which are text until the first record is made."""
    if cls not in _HINTS:
        hints = _HINTS[cls] = {}
        for base in reversed(cls.__mro__):      # all at once: typing.get_type_hints takes three times as long
            said = {name: text for name, text in get_annotations(base).items() if name in cls.model_fields}
            if said:
                hints |= zip(said, eval(f"({', '.join(said.values())},)", vars(sys.modules[base.__module__])), strict=True)
    return _HINTS[cls]


def _acceptors(cls: type[Record]) -> dict[str, Callable[[Any], bool]]:
    if cls not in _ACCEPTORS:
        _ACCEPTORS[cls] = {name: _acceptor(hint) for name, hint in _hints(cls).items()}
    return _ACCEPTORS[cls]


def plain_values(cls: type[Record], given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the values of all fields, or None unless each is plainly right."""
    acceptors, values = _acceptors(cls), {}
    for name, spec in cls.model_fields.items():
        value = given[name] if name in given else spec.value()
        if value is _MISSING or not acceptors[name](value):
            return None
        values[name] = value
    return values if given.keys() <= values.keys() else None


def _acceptor(hint: Any) -> Callable[[Any], bool]:
    """Return what tells whether a value is plainly of a type; pydantic judges what it does not accept."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated_acceptor(args[0], args[1:])
    if origin in (Union, UnionType):
        choices = [_acceptor(arg) for arg in args]
        return lambda value: any(accepts(value) for accepts in choices)
    if origin is Literal:
        return lambda value: any(type(value) is type(arg) and value == arg for arg in args)
    if origin is tuple and args[1:] == (...,):
        item = _acceptor(args[0])
        return lambda value: type(value) is tuple and all(map(item, value))
    if origin is tuple:
        items = [_acceptor(arg) for arg in args]
        return lambda value: type(value) is tuple and len(value) == len(items) and all(a(v) for a, v in zip(items, value, strict=True))
    return lambda value: type(value) is hint


def _annotated_acceptor(base: Any, said: tuple[object, ...]) -> Callable[[Any], bool]:
    accepts = _acceptor(base)
    bounds = [one for one in said if isinstance(one, FieldSpec)]
    checks = [one.check for one in said if isinstance(one, After)]

    def accepts_all(value: Any) -> bool:
        if not accepts(value) or not all(bound.allows(value) for bound in bounds):
            return False
        try:
            return all(check(value) == value for check in checks)
        except ValueError:
            return False

    return accepts_all


# ---- JSON ----

def _to_json(hint: Any, value: Any) -> Any:
    codec = next((one for one in _choices(hint) if isinstance(one, Codec)), None)
    if isinstance(value, Record):
        return value.model_dump()
    if isinstance(value, tuple):
        return [_to_json(get_args(hint)[0], item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return value if isinstance(value, _SCALARS) or codec is None else codec.write(value)


def _from_json(hint: Any, data: Any) -> Any:
    """Return the value of a type that our JSON holds.

    Raises: ValueError, KeyError, TypeError for what we would not have written.
    """
    if isinstance(hint, type) and issubclass(hint, Record):
        hints = _hints(hint)
        values = plain_values(hint, {name: _from_json(hints[name], value) for name, value in data.items()})
        if values is None:
            raise ValueError("left to pydantic")
        return _construct(hint, values)
    if get_origin(hint) is tuple and isinstance(data, list):
        return tuple(_from_json(get_args(hint)[0], item) for item in data)
    if isinstance(data, list | dict):
        raise ValueError("left to pydantic")
    return data


def _choices(hint: Any) -> Iterator[object]:
    """Yield what is said of a type and of the members of a union."""
    for arg in get_args(hint):
        yield arg
        yield from _choices(arg)


# ---- pydantic ----

_MODELS: dict[type[Record], type[BaseModel]] = {}
_RECORDS: dict[type[BaseModel], type[Record]] = {}


def pydantic_model(cls: type[Record]) -> type[BaseModel]:
    """Return the pydantic model with the fields of a record, made when it is first asked for."""
    from pydantic import ConfigDict, create_model

    if cls in _MODELS:
        return _MODELS[cls]
    fields: dict[str, Any] = {}
    for name, hint in _hints(cls).items():
        default = cls.model_fields[name].value()
        fields[name] = (_pydantic_type(hint), ... if default is _MISSING else _pydantic_value(default))
    made: type[BaseModel] = create_model(cls.__name__, __config__=ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True),
                                         **fields)
    made.__repr__ = lambda self: repr(_from_pydantic(self))   # type: ignore[method-assign]
    _MODELS[cls], _RECORDS[made] = made, cls
    return made


def _pydantic_type(hint: Any) -> Any:
    """Return a type as pydantic knows it."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Annotated[_pydantic_type(args[0]), *(part for one in args[1:] for part in _pydantic_marks(one))]
    if origin in (Union, UnionType):
        return Union[tuple(_pydantic_type(arg) for arg in args)]   # noqa: UP007
    if origin is tuple:
        return tuple.__class_getitem__(tuple(arg if arg is ... else _pydantic_type(arg) for arg in args))
    return pydantic_model(hint) if isinstance(hint, type) and issubclass(hint, Record) else hint


def _pydantic_marks(said: object) -> Iterator[object]:
    from pydantic import AfterValidator, BeforeValidator, PlainSerializer, PlainValidator
    from pydantic import Field as PydanticField

    match said:
        case Before():
            yield BeforeValidator(said.convert)
        case After():
            yield AfterValidator(said.check)
        case Codec():
            yield PlainValidator(said.read)
            yield PlainSerializer(said.write)
        case FieldSpec():
            bounds: dict[str, Any] = {name: getattr(said, name) for name in ("discriminator", "strict", "ge", "gt", "le")}
            yield PydanticField(**{name: value for name, value in bounds.items() if value is not None})


def _validate(cls: type[Record], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all fields as pydantic converts them.

    Raises: pydantic.ValidationError.
    """
    found: dict[str, Any] = _from_pydantic(pydantic_model(cls).model_validate({k: _pydantic_value(v) for k, v in given.items()})).__dict__
    return found


def _pydantic_value(value: Any) -> Any:
    """Return a value with pydantic models in place of records."""
    if isinstance(value, Record):
        return pydantic_model(type(value)).model_construct(**{name: _pydantic_value(part) for name, part in value.__dict__.items()})
    if isinstance(value, dict):
        return {name: _pydantic_value(part) for name, part in value.items()}
    return type(value)(map(_pydantic_value, value)) if type(value) in (tuple, list) else value


def _from_pydantic(value: Any) -> Any:
    """Return a value with records in place of pydantic models."""
    record = _RECORDS.get(type(value))
    if record is not None:
        return _construct(record, {name: _from_pydantic(getattr(value, name)) for name in record.model_fields})
    return tuple(map(_from_pydantic, value)) if isinstance(value, tuple) else value


def _construct(cls: type[Record], values: Mapping[str, Any]) -> Record:
    """Return a record of values that were checked."""
    record = cls.__new__(cls)
    record.__dict__.update(values)
    return record
