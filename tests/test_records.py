"""Records: what is plainly right is taken as it is, and pydantic would have taken it too; everything else is pydantic's to judge."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Literal

import numpy as np
import pytest
from pydantic import ValidationError

from pto_wsp.records import After, Before, Codec, Field, Record, first_problem, plain_values, pydantic_model


class Colour(Enum):
    """An enumeration."""

    RED = "red"
    BLUE = "blue"


class Text:
    """A type that JSON does not know."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and other.text == self.text

    def __repr__(self) -> str:
        return f"Text({self.text})"


def read_text(value: object) -> Text:
    """Return a Text from JSON's data."""
    if isinstance(value, Text):
        return value
    if isinstance(value, str):
        return Text(value)
    raise ValueError("a text")


def write_text(text: Text) -> str:
    """Return a Text for JSON."""
    return text.text


def plain_int(value: object) -> object:
    """Return NumPy's integers as Python's."""
    return int(value) if isinstance(value, np.integer) else value


def upper(text: str) -> str:
    """Refuse what is not upper case."""
    if not text.isupper():
        raise ValueError("upper case")
    return text


class Point(Record):
    """A nested record."""

    x: int
    y: int = Field(default=0, description="the other one")


class Circle(Record):
    """One of a union."""

    kind: Literal["circle"] = "circle"
    centre: Point
    radius: Annotated[float, Field(gt=0)] = 1.0


class Square(Record):
    """The other one."""

    kind: Literal["square"] = "square"
    corner: Point


class Everything(Record):
    """Every form of a field."""

    count: Annotated[int, Before(plain_int), Field(strict=True, ge=1, le=9)] = 1
    ratio: float | None = None
    name: Annotated[str, After(upper)] = "A"
    flag: Annotated[bool, Field(strict=True)] = False
    unit: Literal["tasks", "bytes"] = "tasks"
    colour: Colour = Colour.RED
    text: Annotated[Text, Codec(read_text, write_text)] | None = None
    points: tuple[Point, ...] = ()
    pairs: tuple[tuple[int, str], ...] = ()
    shape: Annotated[Circle | Square, Field(discriminator="kind")] | None = None
    made: tuple[int, ...] = Field(default_factory=lambda: (1, 2))


VALUES: dict[str, list[object]] = {
    "count": [1, 9, 0, 10, True, "3", 2.0, None, np.int64(4), np.int64(0)],
    "ratio": [None, 1.5, 2, "1.5", "x", float("inf")],
    "name": ["B", "b", 3, ""],
    "flag": [True, False, 1, "yes", None],
    "unit": ["tasks", "bytes", "rows", 3, None],
    "colour": [Colour.BLUE, "blue", "green", 1],
    "text": [Text("t"), "t", None, 4],
    "points": [(), (Point(x=1),), [Point(x=1)], ({"x": 2},), (Circle(centre=Point(x=1)),), (1,), None],
    "pairs": [(), ((1, "a"),), [[1, "a"]], ((1, 2),), ((1,),), ((1, "a", 2),)],
    "shape": [None, Circle(centre=Point(x=1)), Square(corner=Point(x=1)), {"kind": "square", "corner": {"x": 3}}, Point(x=1),
              {"kind": "oval"}, {"kind": "circle", "centre": Point(x=1), "radius": -1.0}],
    "made": [(), (3,), [4], ("5",), 5],
    "unknown": [1],
}
CASES = [(name, value) for name, values in VALUES.items() for value in values]


def judged(record: Everything) -> bool:
    """Tell whether pydantic accepts the fields of a record as they are."""
    return pydantic_model(Everything).model_validate_json(record.model_dump_json()) is not None


@pytest.mark.parametrize("name, value", CASES, ids=str)
def test_what_is_plainly_right_is_right_and_unchanged_for_pydantic(name: str, value: object) -> None:
    plain = plain_values(Everything, {name: value})
    if plain is None:
        return
    assert plain[name] is value
    record = Everything(**{name: value})
    assert judged(record)
    # the other way round: made by pydantic from the same data, the record is the same
    assert Everything.model_validate_json(record.model_dump_json()) == record


@pytest.mark.parametrize("name, value, found", [
    ("count", np.int64(4), 4), ("ratio", 2, 2.0), ("ratio", "1.5", 1.5), ("colour", "blue", Colour.BLUE), ("text", "t", Text("t")),
    ("points", [Point(x=1)], (Point(x=1),)), ("points", ({"x": 2},), (Point(x=2, y=0),)), ("pairs", [[1, "a"]], ((1, "a"),)),
    ("shape", {"kind": "square", "corner": {"x": 3}}, Square(corner=Point(x=3))), ("made", [4], (4,)), ("made", ("5",), (5,)),
])
def test_pydantic_converts_what_it_can(name: str, value: object, found: object) -> None:
    record = Everything(**{name: value})
    assert getattr(record, name) == found and type(getattr(record, name)) is type(found)


@pytest.mark.parametrize("name, value, says", [
    ("count", 0, "greater than or equal to 1"), ("count", True, "valid integer"), ("count", "3", "valid integer"),
    ("name", "b", "upper case"), ("flag", 1, "valid boolean"), ("unit", "rows", "'tasks' or 'bytes'"),
    ("colour", "green", "'red' or 'blue'"),
    ("text", 4, "a text"), ("points", (Circle(centre=Point(x=1)),), "Point"), ("pairs", ((1,),), "Field required"),
    ("shape", Point(x=1), "discriminator"), ("shape", {"kind": "oval"}, "oval"), ("unknown", 1, "Extra inputs"),
])
def test_pydantic_refuses_the_rest(name: str, value: object, says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Everything(**{name: value})
    where, expected, _ = first_problem(caught.value)
    assert where.split(".")[0] == name and says in expected


def test_a_missing_field_is_refused() -> None:
    with pytest.raises(ValidationError, match="Field required"):
        Point()  # type: ignore[call-arg]


def records() -> Iterator[Everything]:
    """Yield records with every kind of value."""
    yield Everything()
    yield Everything(count=3, ratio=0.5, name="X", flag=True, unit="bytes", colour=Colour.BLUE, text=Text("t"),
                     points=(Point(x=1), Point(x=2, y=3)), pairs=((1, "a"),), shape=Circle(centre=Point(x=1), radius=2.0), made=(9,))


@pytest.mark.parametrize("record", [*records()], ids=["defaults", "all"])
def test_a_record_goes_through_json_pickle_and_copy(record: Everything) -> None:
    assert Everything.model_validate_json(record.model_dump_json()) == record
    assert record.model_dump_json() == pydantic_model(Everything).model_validate_json(record.model_dump_json()).model_dump_json()
    assert copy.deepcopy(record) == record
    assert pickle.loads(pickle.dumps(record)) == record


def test_copies_are_checked_and_records_are_frozen() -> None:
    point = Point(x=1)
    assert point.model_copy(update={"y": 4}) == Point(x=1, y=4) != point
    with pytest.raises(ValidationError):
        point.model_copy(update={"y": "no"})
    with pytest.raises(ValidationError, match="frozen"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        del point.x
    assert point.x == 1 and hash(point) == hash(Point(x=1)) and repr(point) == "Point(x=1, y=0)"
    assert Point.model_fields["y"].description == "the other one"


@pytest.mark.slow
def test_plain_values_load_no_pydantic() -> None:
    code = ("import sys, numpy as np\nfrom pto_wsp import *\n"
            "w = workload(lambda: None)().dispatch(DispatchPolicy.round_robin(4)).task_graph(window=TaskWindow(8, 'tasks'))\n"
            "w.compile()\nassert 'pydantic' not in sys.modules")
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_text_nested_deeper_than_the_stack_is_refused_as_any_other() -> None:
    with pytest.raises(ValueError, match="recursion limit"):
        Everything.model_validate_json('{"threads":' + "[" * 100000)
