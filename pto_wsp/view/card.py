"""Cards: all that is shown of a value, as data. No renderer looks at a program, and no card knows HTML.

A card has a title, one sentence that a person could act on, and parts: facts, tables, bars, lanes of tasks, code, nested boxes.
`Card.model_dump_json()` is what a command prints with --json.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class CardPart(BaseModel):
    """Base of the parts of a card."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LegendEntry(CardPart):
    """A kernel in a picture: its name, its letter, and its slot in the table of colours (8 to 15: hatched)."""

    name: str
    letter: str
    slot: int


class LabelledValue(CardPart):
    """A label and its value; `note` says more in a tooltip."""

    label: str
    value: str
    note: str = ""


class ValuesPart(CardPart):
    """Labelled values, one beside the other."""

    kind: Literal["values"] = "values"
    values: tuple[LabelledValue, ...]


class TablePart(CardPart):
    """A table. `right`: the columns of numbers. `more`: the number of rows left out."""

    kind: Literal["table"] = "table"
    title: str = ""
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()
    more: int = 0


class Segment(CardPart):
    """A part of a bar. `tone`: work is grey, loss is red, rest is light."""

    label: str
    amount: int
    tone: Literal["work", "submission", "bad", "rest"]


class BarPart(CardPart):
    """A total as segments on one line. `bound`: where the lower bound lies, if there is one; amounts and bound in `unit`."""

    kind: Literal["bar"] = "bar"
    title: str = ""
    unit: str
    segments: tuple[Segment, ...]
    bound: int | None = None


class TaskMark(CardPart):
    """A span of a lane in which one kernel ran. `x`, `width`: thousandths of the lane; `full`: busy for more than half of the span."""

    x: int
    width: int
    kernel: int
    full: bool = True
    name: str = ""


class TaskLane(CardPart):
    """An executor, or executors that are folded into one lane: a label, the share of time that it was busy, and its marks."""

    label: str
    group: str
    busy: str
    marks: tuple[TaskMark, ...]


class LanesPart(CardPart):
    """Tasks over time. `total`: the time of the full width in `unit`; `more`: lanes left out; `merged`: marks stand for several tasks."""

    kind: Literal["lanes"] = "lanes"
    unit: str
    total: int
    lanes: tuple[TaskLane, ...]
    legend: tuple[LegendEntry, ...]
    more: int = 0
    merged: bool = False


class Site(CardPart):
    """A call of a kernel: the task's name, and its arguments with how they are used."""

    kernel: LegendEntry
    index: str
    arguments: tuple[LabelledValue, ...]


class Box(CardPart):
    """A loop, a branch or a process: its head, the size at the right, and what is inside, in order.

    `order`: `any` for iterations without an order, `down` for iterations in order, `none` for other statements.
    """

    head: str
    size: str = ""
    order: Literal["any", "down", "none"] = "none"
    inside: tuple[Box | Site | str, ...] = ()


class BoxesPart(CardPart):
    """The tree of a workload."""

    kind: Literal["boxes"] = "boxes"
    boxes: tuple[Box | Site | str, ...]
    more: int = 0


class Preformatted(CardPart):
    """Text in a fixed pitch, as it is."""

    kind: Literal["text"] = "text"
    title: str = ""
    text: str


Part = Annotated[ValuesPart | TablePart | BarPart | LanesPart | BoxesPart | Preformatted, Field(discriminator="kind")]


class Card(CardPart):
    """What is shown of one value. `subtitle`: its kind and where it is from; `state`: what is still open; `sentence`: the verdict."""

    title: str
    subtitle: str = ""
    state: str = ""
    sentence: str = ""
    parts: tuple[Part, ...] = ()
    foot: str = ""
