"""Our `dataclass` against the standard one: the same behaviour, field for field."""

from __future__ import annotations

import abc
import dataclasses
import inspect
import pickle
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

import pytest

from pto_wsp.values import Derived, ReadLater, replaced
from pto_wsp.values import dataclass as ours


class _Body:
    """The fields of the classes compared."""

    a: int
    b: tuple[int, ...] = (1, 2)
    c: list[int] = field(default_factory=list)
    d: str = field(default="x", compare=False, repr=False)


def _make(decorator: Any, name: str) -> Any:
    body = {key: value for key, value in vars(_Body).items() if key not in ("__dict__", "__weakref__")}
    return decorator(frozen=True, slots=True)(type(name, (), {**body, "__qualname__": "Node"}))


Standard = _make(dataclasses.dataclass, "Standard")
Node = _make(ours, "Node")
globals()["Node"] = Node
Node.__module__ = __name__


@pytest.mark.parametrize("args, kwargs", [((1,), {}), ((1, (3,)), {"d": "y"}), ((), {"a": 5, "c": [7]})])
def test_values_are_those_of_the_standard_library(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    mine, other = Node(*args, **kwargs), Standard(*args, **kwargs)
    assert [getattr(mine, f.name) for f in fields(mine)] == [getattr(other, f.name) for f in fields(other)]
    assert repr(mine) == repr(other)
    assert is_dataclass(mine) and Node.__match_args__ == Standard.__match_args__ and Node.__slots__ == Standard.__slots__


def test_equality_leaves_out_fields_that_do_not_compare() -> None:
    assert Node(1, d="p") == Node(1, d="q") and Node(1) != Node(2) and Node(1) != Standard(1)
    assert hash(replace(Node(1, c=()), d="p")) == hash(Node(1, c=()))


def test_each_instance_has_its_own_made_default() -> None:
    first, second = Node(1), Node(1)
    first.c.append(3)
    assert second.c == []


def test_nothing_can_be_assigned_or_deleted() -> None:
    node = Node(1)
    for name in ("a", "d", "new"):
        with pytest.raises(FrozenInstanceError):
            setattr(node, name, 2)
    with pytest.raises(FrozenInstanceError):
        del node.a
    assert node.a == 1


def test_missing_and_unknown_arguments_are_type_errors() -> None:
    for args, kwargs in (((), {}), ((1, 2, 3, 4, 5), {}), ((1,), {"e": 2})):
        with pytest.raises(TypeError):
            Node(*args, **kwargs)


def test_replace_and_pickle_and_match() -> None:
    node = replace(Node(1), a=9)
    assert node.a == 9 and pickle.loads(pickle.dumps(node)) == node
    match node:
        case Node(a, b):
            assert (a, b) == (9, (1, 2))
        case _:
            raise AssertionError("no match")


def test_methods_of_the_class_win() -> None:
    made: Any = ours(frozen=True, slots=True)(type("Own", (), {"__annotations__": {"a": int}, "__doc__": "x",
                                                               "__repr__": lambda self: "mine", "__hash__": lambda self: 7}))
    assert repr(made(1)) == "mine" and hash(made(1)) == 7 and made(1) == made(1)


@pytest.mark.parametrize("decorator", [ours, dataclasses.dataclass])
def test_one_that_is_not_frozen_changes_and_has_no_hash(decorator: Any) -> None:
    made = decorator(slots=True)(type("Mutable", (), {"__annotations__": {"a": int, "b": list}, "b": field(default_factory=list),
                                                      "__doc__": "x"}))
    value = made(1)
    value.a = 2
    value.b.append(3)
    assert value == made(2, [3]) != made(2) and made.__hash__ is None and repr(value).endswith("(a=2, b=[3])")
    with pytest.raises(AttributeError):
        value.c = 1
    plain = decorator(slots=True, eq=False)(type("Plain", (), {"__annotations__": {"a": int}, "__doc__": "x"}))
    assert plain(1) != plain(1) and {plain(1)}
    with pytest.raises(TypeError, match="inherit"):
        decorator(frozen=True, slots=True)(type("Frozen", (plain,), {"__annotations__": {"b": int}, "__doc__": "x"}))


def test_a_constructor_is_made_once_when_it_is_asked_for() -> None:
    made = ours(frozen=True, slots=True)(type("Late", (), {"__annotations__": {"a": int, "b": int}, "b": 2, "__doc__": "x"}))
    child = ours(frozen=True, slots=True)(type("Child", (made,), {"__annotations__": {"c": int}, "c": 3, "__doc__": "x"}))
    assert child(1) == child(1, 2, 3) and made.__dict__["__init__"].__class__ is not child.__dict__["__init__"].__class__
    assert str(inspect.signature(made)) == "(a, b=2)"
    init = made.__dict__["__init__"]
    assert made(1) == made(1, 2) and made.__dict__["__init__"] is init and init.__qualname__ == "Late.__init__"


def test_other_forms_are_left_to_the_standard_library() -> None:
    made: Any = ours(type("Open", (), {"__annotations__": {"a": int}, "__doc__": "x"}))
    value = made(1)
    value.b = 2
    assert value == made(1) and made.__hash__ is None


@pytest.mark.parametrize("body", [
    {"__annotations__": {"a": "ClassVar[int]", "b": "int"}, "a": 3, "__module__": "typing"},
    {"__annotations__": {"a": "KW_ONLY", "b": "int"}, "__module__": "dataclasses"},
    {"__annotations__": {"b": "int"}, "b": field(kw_only=True)},
], ids=["ClassVar", "KW_ONLY", "kw_only"])
def test_other_fields_are_left_to_the_standard_library(body: dict[str, Any]) -> None:
    def make(decorator: Any) -> Any:
        own = {name: field(kw_only=True) if isinstance(value, dataclasses.Field) else value for name, value in body.items()}
        return decorator(frozen=True, slots=True)(type("Other", (), {**own, "__doc__": "x"}))

    mine, other = make(ours), make(dataclasses.dataclass)
    assert repr(mine(b=1)) == repr(other(b=1))
    assert [f.name for f in fields(mine)] == [f.name for f in fields(other)]


def test_a_default_that_changes_is_refused_and_so_is_a_field_without_one_after_it() -> None:
    for body in ({"__annotations__": {"a": list}, "a": []}, {"__annotations__": {"a": int, "b": int}, "a": 1}):
        for decorator in (ours, dataclasses.dataclass):
            with pytest.raises((ValueError, TypeError, SyntaxError)):
                decorator(frozen=True, slots=True)(type("Wrong", (), {**body, "__doc__": "x"}))


@pytest.mark.parametrize("kw_only", [False, True])
def test_inheritance_is_that_of_the_standard_library(kw_only: bool) -> None:
    def make(decorator: Any) -> tuple[Any, Any]:
        made = decorator(frozen=True, slots=True, kw_only=kw_only)
        base = made(type("Base", (abc.ABC,), {"__annotations__": {"a": int, "b": int}, "b": 5, "__doc__": "x",
                                              "twice": lambda self: 2 * self.a, "__qualname__": "Base"}))
        return base, made(type("Child", (base,), {"__annotations__": {"c": str, "b": int}, "c": "z", "b": 7, "__doc__": "x",
                                                  "__qualname__": "Child"}))

    (base, child), (_, other) = make(ours), make(dataclasses.dataclass)
    mine, theirs = child(a=1), other(a=1)
    assert repr(mine) == repr(theirs) == "Child(a=1, b=7, c='z')"
    assert [f.name for f in fields(child)] == [f.name for f in fields(other)]
    assert child.__match_args__ == other.__match_args__ and child.__slots__ == other.__slots__
    assert mine.twice() == 2 and isinstance(mine, base) and not hasattr(mine, "__dict__")
    assert mine == child(a=1) != child(a=2) and hash(mine) == hash(child(a=1)) and replace(mine, c="y") == child(a=1, c="y")
    with pytest.raises(FrozenInstanceError):
        mine.c = "q"
    if kw_only:
        with pytest.raises(TypeError):
            child(1)


class _Plain:
    """A base without fields."""

    __slots__ = ()

    def twice(self) -> int:
        return 2 * self.a  # type: ignore[attr-defined, no-any-return]


T = TypeVar("T")


@pytest.mark.parametrize("bases", [(_Plain,), (_Plain, Generic[T]), (abc.ABC,)], ids=str)
def test_a_base_without_fields_is_as_none(bases: tuple[Any, ...]) -> None:
    def made(decorator: Any) -> Any:
        body: dict[str, Any] = {"__annotations__": {"a": int, "b": str}, "b": "x", "__module__": __name__}
        return decorator(frozen=True, slots=True)(types.new_class("Node", bases, exec_body=lambda names: names.update(body)))

    standard, fast = made(dataclasses.dataclass), made(ours)
    for kind in (standard, fast):
        value = kind(3)
        assert (value.a, value.b, repr(value)) == (3, "x", "Node(a=3, b='x')") and value == kind(3) and hash(value) == hash(kind(3, "x"))
        assert value != kind(4) and replace(value, a=5) == kind(5) and isinstance(value, _Plain) == (_Plain in bases)
        assert _Plain not in bases or value.twice() == 6
        with pytest.raises(FrozenInstanceError):
            value.a = 1
    assert standard.__mro__[1:] == fast.__mro__[1:] and [f.name for f in fields(fast)] == ["a", "b"]


# -- fields that are read later -------------------------------------------------------------------------------------------
@ours(frozen=True, slots=True)
class Later(ReadLater):
    """A value whose second and third field may be read later."""

    a: int
    b: str
    c: object = None


def test_fields_are_read_once_when_one_is_first_asked_for() -> None:
    reads: list[object] = []

    def read() -> dict[str, object]:
        reads.append(None)
        return {"b": "x", "c": object()}

    value = Later.read_later(read, ("b", "c"), a=1)
    assert value.a == 1 and not reads
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: value.c, range(64)))
    assert len(set(map(id, found))) == 1 and value.b == "x" and len(reads) == 1


def test_a_value_that_is_read_later_is_that_value() -> None:
    def value() -> Any:
        return Later.read_later(lambda: {"b": "x", "c": None}, ("b", "c"), a=1)

    assert value() == Later(1, "x") and hash(value()) == hash(Later(1, "x")) and repr(value()) == "Later(a=1, b='x', c=None)"
    assert replace(value(), a=2) == Later(2, "x") and pickle.loads(pickle.dumps(value())) == Later(1, "x")
    with pytest.raises(AttributeError, match="has no attribute 'd'"):
        value().d  # noqa: B018 - it raises
    with pytest.raises(FrozenInstanceError):
        value().b = "y"


def test_what_reading_raises_is_raised_each_time() -> None:
    value = Later.read_later(lambda: {}[0], ("b", "c"), a=1)
    for _ in range(2):
        with pytest.raises(KeyError):
            value.b  # noqa: B018 - it raises


class _Sum(Derived):
    __slots__ = ("total",)
    total: int


@ours(frozen=True, slots=True)
class _Terms(_Sum):
    terms: tuple[int, ...]
    found: list[int] = field(default_factory=list, compare=False)

    def _find_total(self) -> int:
        self.found.append(sum(self.terms))
        return self.found[-1]


def test_what_follows_from_fields_is_found_once() -> None:
    value = _Terms((1, 2))
    assert not value.found and value.total == value.total == 3 and value.found == [3]
    assert replace(value, terms=(4, 5)).total == 9 and pickle.loads(pickle.dumps(value)) == value == _Terms((1, 2))
    assert pickle.loads(pickle.dumps(value)).total == 3
    with pytest.raises(AttributeError, match="has no attribute 'mean'"):
        value.mean  # type: ignore[attr-defined]  # noqa: B018 - it raises


def test_a_value_whose_fields_stay_is_the_same_object() -> None:
    one, two = (1, 2), [3]
    value = _Terms(one, two)
    assert replaced(value, terms=one, found=two) is value
    assert replaced(value, terms=tuple([*one])) is value
    assert replaced(value, terms=(1, 2, 3)) == _Terms((1, 2, 3)) and replaced(value, terms=()) == _Terms(())
